// Goes on with a run by itself; without this file the button does it. Only the figures are exchanged: a page
// that loads again every second would take the focus from the link that stops it.
const form = document.getElementById("run-on");
const button = form.querySelector("[type=submit]");
const broken = document.getElementById("run-broken");

function exchange(id, page) {
    document.getElementById(id).replaceWith(page.getElementById(id));
}

async function step() {
    const answer = await fetch(form.action, { method: "POST", body: new FormData(form) });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!answer.ok || !page.getElementById("run-state")) throw new Error(answer.status);
    if (!page.getElementById("run-on")) {
        exchange("content-main", page);
        document.querySelector(".run-counts").focus();
        return false;
    }
    exchange("run-state", page);
    // Not while somebody is reading it.
    if (!document.getElementById("run-report").matches(":has(details[open]), :focus-within")) {
        exchange("run-report", page);
    }
    return true;
}

async function goOn() {
    button.hidden = true;
    try {
        while (await step());
    } catch {
        button.hidden = false;
        broken.hidden = false;
    }
}

goOn();
