// Goes on with a run by itself; without this file the button does it.
document.getElementById("run-on").requestSubmit();
