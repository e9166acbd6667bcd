"""A page in headless Chromium: run a script in it and read what it says."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

# The policy of the page applies to what is added too; whatever it blocks, logs or throws is an error.
CATCH = """<script>
window.problems = [];
addEventListener("error", event => problems.push(String(event.message)));
addEventListener("unhandledrejection", event => problems.push(String(event.reason)));
addEventListener("securitypolicyviolation", event => problems.push("blocked " + event.blockedURI));
for (const level of ["error", "warn"]) console[level] = (...words) => problems.push(words.join(" "));
</script>
"""


def run(page: str, script: str, folder) -> dict:
    """Load `page`, run `script` (the body of an async function that returns a value), return that and the problems."""
    probe = f"""<script>
addEventListener("load", async () => {{
  const wait = ms => new Promise(resolve => setTimeout(resolve, ms));
  await wait(200);
  let said = null;
  try {{ said = await (async () => {{ {script} }})(); }} catch (error) {{ problems.push(String(error.stack)); }}
  document.title = "probe " + JSON.stringify({{said, problems}});
}});
</script>
"""
    body, end, rest = page.replace("<title>", CATCH + "<title>", 1).rpartition("</body>")
    path = folder / "page.html"
    path.write_text(body + probe + end + rest)
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    flags += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    flags += [f"--user-data-dir={folder / 'profile'}", "--window-size=1200,1600", "--virtual-time-budget=20000"]
    command = [CHROMIUM, *flags, "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    found = re.search(r"<title>probe (.*?)</title>", done.stdout)
    assert found, done.stdout[:500]
    return json.loads(html.unescape(found[1]))
