-- text_identifiers() finds what it always found, so that stored columns stay as they are, in a third of the time:
-- separators by one regular expression (translate() compares every character with each of theirs), only words that
-- may be an identifier are looked at one by one, and capitals are counted only when a word in capitals asks for it.

CREATE OR REPLACE FUNCTION text_identifiers(source text) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
    body constant text := left(source, 20000);
    head constant text := left(source, 2000);
    ends constant text := '-_.:';
    -- in a text shouted in capitals they say nothing
    capitals_speak boolean;
    words text[];
    place bigint;
    word text;
    before text;
    before_that text;
    found text[] := '{}';
BEGIN
    IF source IS NULL OR body !~ '\d|_|[A-Z]{4}' THEN
        RETURN found;
    END IF;
    words := string_to_array(
        regexp_replace(
            regexp_replace(body, '[\u2010-\u2014]', '-', 'g'),
            '[\t\n\r\u00a0,;!?()[\]{}<>"''`|/\\=+*~&%$@^§´„“”‚‘’«»€°…]', ' ', 'g'
        ), ' '
    );
    FOR place, word IN
        SELECT ordinality, btrim(candidate, ends)
        FROM unnest(words) WITH ORDINALITY AS candidates (candidate)
        WHERE candidate ~ '\d|_|[A-Z]{4}'
    LOOP
        IF word ~ '\d|_' THEN
            IF word ~ '^(\d{4}-\d\d-\d\d([T_:-]?\d.*)?|\d{1,2}\.\d{1,2}\.(\d{4}|\d\d)|\d{1,2}:\d\d(:\d\d(\.\d+)?)?)$' THEN
                CONTINUE;  -- a date or a time
            ELSIF word ~ ':' AND word !~ '^([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$' THEN
                found := found || string_to_array(word, ':');  -- "Code:0x80070005"; a MAC address stays whole
            ELSE
                found := found || word;
                IF word ~ '^[vV]\d+\.\d' THEN
                    found := found || substr(word, 2);  -- a version is named with and without its v
                ELSIF word ~ '^[A-Za-z][^.]*\d[^.]*\.' THEN
                    found := found || split_part(word, '.', 1);  -- a host with and without its domain
                ELSIF word ~ '[-_].*\d{4}|\d{4}.*[-_]' THEN
                    -- the number of a tag is often named alone: 10234 for NB-10234
                    found := found || ARRAY(
                        SELECT part FROM regexp_split_to_table(word, '[-_]+') AS part WHERE length(part) >= 4 AND part ~ '\d'
                    );
                ELSIF word ~ '^\d[A-Z0-9]*$' THEN
                    -- "PRN 4F 017" is PRN-4F-017, "srv 01" is SRV-01: capitals or a zero tell them from "nach 14 Tagen"
                    before := btrim(words[place - 1], ends);
                    before_that := btrim(words[place - 2], ends);
                    IF before ~ '^[A-Z]{2,6}$' OR word ~ '^0\d' AND before ~ '^[A-Za-z]{2,6}$' THEN
                        found := found || (before || word);
                    ELSIF before_that ~ '^[A-Z]{2,6}$' AND before ~ '^\d[A-Z0-9]*$' THEN
                        found := found || (before_that || before || word);
                    END IF;
                END IF;
            END IF;
        ELSIF word ~ '^[A-Z]{4,}$' THEN
            capitals_speak := coalesce(capitals_speak, 2 * regexp_count(head, '[A-ZÄÖÜ]') < length(head));
            IF capitals_speak THEN
                found := found || word;  -- MIRO, ECONNRESET
            END IF;
        END IF;
        EXIT WHEN cardinality(found) > 400;
    END LOOP;
    IF found = '{}' THEN
        RETURN found;
    END IF;
    RETURN ARRAY(
        SELECT translate(lower(part), 'ÄÖÜ-_:', 'äöü') AS identifier
        FROM unnest(found) WITH ORDINALITY AS parts (part, position)
        WHERE looks_like_identifier(part)
            -- without a digit: joined by an underscore (DBIF_RSQL_SQL_ERROR), or capitals
            OR length(part) BETWEEN 6 AND 80 AND part ~ '[A-Za-z]_+[A-Za-z]'
            OR part ~ '^[A-Z]{4,40}$'
        GROUP BY 1
        ORDER BY min(position)
        LIMIT 64
    );
END
$$;
