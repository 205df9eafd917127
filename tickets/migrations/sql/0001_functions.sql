-- Functions for generated columns. IMMUTABLE is a promise: who changes one rewrites the columns that use it.

-- SHA-256 of what is embedded. convert_to() is only STABLE, hence the wrapper.
CREATE FUNCTION ticket_content_hash(title text, description text) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
AS $$ SELECT sha256(convert_to(title || E'\n' || description, 'UTF8')) $$;

-- Words for full-text search, as they are written, in any language. Bounded, because a tsvector holds at most 1 MB.
CREATE FUNCTION ticket_search_words(title text, description text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
AS $$
SELECT setweight(to_tsvector('pg_catalog.simple'::regconfig, title), 'A')
    || setweight(to_tsvector('pg_catalog.simple'::regconfig, left(description, 50000)), 'B')
$$;

-- History is written once. (It may be deleted, together with its ticket.)
CREATE FUNCTION tickets_refuse_event_update() RETURNS trigger LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION 'ticket history is append-only: events cannot be changed'; END $$;

-- One rule for what counts as an identifier, for stored tickets and for the text of a search alike.
-- The result is canonical (lower case, without hyphens and underscores: NB-10234 = nb_10234 = NB10234), in order of first
-- appearance, at most 64, taken from the first 20,000 characters. Dates, times, units and ordinals are none; a bare number
-- needs three digits or a point (room 2.14). How much an identifier says is decided by its rarity, when searching.

CREATE FUNCTION looks_like_identifier(word text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
SELECT length(word) BETWEEN 3 AND 80
    -- letters beside the digit, or three digits in a row, or a point between two; and three characters beside the hyphens
    AND word ~ '^#\d{1,9}$|[A-Za-z].*\d|\d.*[A-Za-z]|\d{3}|\d\.\d'
    AND length(translate(word, '-_:', '')) >= 3
    -- amounts and ordinals: 16GB, 3rd, 30min
    AND word !~ ('^\d+(\.\d+)?-?(st|nd|rd|th|er?|te[nrs]?|x|h|m?s|se[ck]|[Mm]in|[Ss]td|mal|fach|[KMGTkmgt]i?[Bb]|[KMGkmg]bit'
        || '|px|pt|[kcm]?m|kg|k|w|W|V|[kMG]?Hz|pm|PM|am|AM|Uhr|uhr|EUR|USD|[Zz]oll|days?|[Tt]age?n?)$')
$$;

CREATE FUNCTION text_identifiers(source text) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
    head constant text := left(source, 2000);
    capitals constant text := 'ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÜ';
    -- in a text shouted in capitals they say nothing
    capitals_speak boolean;
    word text;
    before text := '';
    before_that text := '';
    found text[] := '{}';
BEGIN
    IF source IS NULL OR left(source, 20000) !~ '\d|_|[A-Z]{4}' THEN
        RETURN found;
    END IF;
    capitals_speak := 2 * length(translate(head, capitals, '')) > length(head);
    FOREACH word IN ARRAY string_to_array(
        translate(
            left(source, 20000),
            E'\u2010\u2011\u2012\u2013\u2014\t\n\r\u00a0,;!?()[]{}<>"''`|/\\=+*~&%$@^§´„“”‚‘’«»€°…',
            '-----' || repeat(' ', 60)
        ), ' '
    ) LOOP
        word := btrim(word, '-_.:');
        IF word ~ '\d|_' THEN
            IF word ~ '^(\d{4}-\d\d-\d\d([T_:-]?\d.*)?|\d{1,2}\.\d{1,2}\.(\d{4}|\d\d)|\d{1,2}:\d\d(:\d\d(\.\d+)?)?)$' THEN
                word := '';  -- a date or a time
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
                    IF before ~ '^[A-Z]{2,6}$' OR word ~ '^0\d' AND before ~ '^[A-Za-z]{2,6}$' THEN
                        found := found || (before || word);
                    ELSIF before_that ~ '^[A-Z]{2,6}$' AND before ~ '^\d[A-Z0-9]*$' THEN
                        found := found || (before_that || before || word);
                    END IF;
                END IF;
            END IF;
        ELSIF capitals_speak AND word ~ '^[A-Z]{4,}$' THEN
            found := found || word;  -- MIRO, ECONNRESET
        END IF;
        EXIT WHEN cardinality(found) > 400;
        before_that := before;
        before := word;
    END LOOP;
    RETURN ARRAY(
        SELECT translate(lower(part), 'ÄÖÜ-_:', 'äöü') AS identifier
        FROM unnest(found) WITH ORDINALITY AS parts (part, place)
        WHERE looks_like_identifier(part)
            -- without a digit: joined by an underscore (DBIF_RSQL_SQL_ERROR), or capitals
            OR length(part) BETWEEN 6 AND 80 AND part ~ '[A-Za-z]_+[A-Za-z]'
            OR part ~ '^[A-Z]{4,40}$'
        GROUP BY 1
        ORDER BY min(place)
        LIMIT 64
    );
END
$$;

-- With a search path of its own: a restore from a dump computes generated columns with an empty one.
CREATE FUNCTION ticket_identifiers(title text, description text) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path FROM CURRENT
AS $$ SELECT text_identifiers(coalesce(title, '') || E'\n' || coalesce(description, '')) $$;
