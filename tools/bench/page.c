// The frame of the page and its looks. Everything is in the one file: no script, no font, no
// picture is fetched from anywhere.
//
// Colours: ours in blues, strong; the others in hues that stay apart for colour-blind eyes, in
// light and in dark. No fact hangs on a colour alone: bars carry names, verdicts are words.
#include "tools/bench/page.h"

#include <string.h>

void hz_page_text(FILE *out, const char *text) {
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '&') fputs("&amp;", out);
    else if (c == '<') fputs("&lt;", out);
    else if (c == '>') fputs("&gt;", out);
    else if (c == '"') fputs("&quot;", out);
    else if (c == '\'') fputs("&#39;", out);
    else if (c < 0x20 && !strchr("\t\n\r", c)) putc('?', out);
    else putc(c, out);
  }
}

static const char colours[] =
    ":root{color-scheme:light dark;--page:#fff;--text:#1c2126;--soft:#59636e;--line:#d5dbe1;"
    "--card:#f6f8fa;--good:#0a5fb0;--good-back:#dcecfb;--bad:#a04000;--bad-back:#fde8d7;"
    "--o0:#0b57a8;--o1:#2f7fd1;--o2:#0a7f93;--o3:#5360c4;--o4:#08407c;--o5:#2a9db5;"
    "--p0:#6e7781;--p1:#c4741a;--p2:#8a5a9e;--p3:#5d8a2e;--p4:#c0506a;--p5:#9a7b0a;"
    "--p6:#7d5a3c;--p7:#4d8f74;--p8:#a86fb0;--p9:#8f8f5a}"
    "@media(prefers-color-scheme:dark){:root{--page:#14181d;--text:#e4e8ec;--soft:#9aa5b1;"
    "--line:#343c45;--card:#1b2127;--good:#7dbdff;--good-back:#12304d;--bad:#ffb077;"
    "--bad-back:#47280f;"
    "--o0:#4ea1f7;--o1:#8ac2ff;--o2:#3cc0d4;--o3:#97a2f5;--o4:#3480cf;--o5:#7fdcee;"
    "--p0:#8b949e;--p1:#d98d3e;--p2:#ae83c2;--p3:#85ad5a;--p4:#d8748c;--p5:#bf9f34;"
    "--p6:#a9825f;--p7:#6bb096;--p8:#c394ca;--p9:#b0b07c}}";

static const char texts[] =
    "*{box-sizing:border-box}"
    "body{margin:0 auto;max-width:1080px;padding:1.5rem 1rem 4rem;background:var(--page);"
    "color:var(--text);font:16px/1.5 system-ui,sans-serif;overflow-wrap:break-word}"
    "h1{font-size:1.7rem;line-height:1.2;margin:0 0 .3rem}"
    "h2{font-size:1.3rem;margin:3rem 0 .5rem;padding-top:.6rem;border-top:2px solid var(--line)}"
    "h3{font-size:1.05rem;margin:0}p{margin:.3rem 0}"
    "a{color:inherit;text-underline-offset:.2em}nav a{margin-right:1rem}"
    "code{font:13px/1.4 ui-monospace,monospace}.soft,figcaption{color:var(--soft)}"
    ".lead{font-size:1.1rem;margin:1rem 0}.ours{font-weight:650}.failed{color:var(--bad)}";

static const char tables[] =
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-size:14px;"
    "font-variant-numeric:tabular-nums;margin:.6rem 0}"
    "th,td{padding:.2rem .7rem .2rem 0;text-align:right;border-bottom:1px solid var(--line);"
    "white-space:nowrap;vertical-align:baseline}th{font-weight:600;color:var(--soft)}"
    "th:first-child,td:first-child,.left{text-align:left}.middle{text-align:center}.wrap{white-"
    "space:normal}"
    "td+td.left{padding-left:.3rem}td.ahead,td.behind,td.same{padding:.2rem "
    ".6rem;border-radius:3px}"
    ".ahead{color:var(--good);background:var(--good-back)}"
    ".behind{color:var(--bad);background:var(--bad-back)}"
    ".scale{position:relative;width:11rem;min-width:7rem}"
    ".scale::before{content:'';position:absolute;left:50%;top:0;bottom:0;"
    "border-left:1px solid var(--soft)}"
    ".scale i{position:absolute;top:25%;bottom:25%;background:var(--soft)}"
    ".scale i.ahead{background:var(--good)}.scale i.behind{background:var(--bad)}"
    ".group td{padding-top:1rem;font-weight:650}";

static const char figures[] =
    ".lane{margin:1.2rem 0;padding:.9rem 1rem;background:var(--card);"
    "border:1px solid var(--line);border-radius:8px}"
    ".lane summary{cursor:pointer;color:var(--soft);font-size:14px;margin-top:.4rem}"
    ".figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,400px),1fr));"
    "gap:.5rem 1rem;margin:.6rem 0}figure{margin:0}figcaption{font-size:13px;font-weight:600}"
    "svg{display:block;width:100%;max-width:480px;height:auto}"
    "svg text{fill:currentColor;stroke:none;font:13px system-ui,sans-serif}"
    "svg .ours{font-weight:700}svg .failed{fill:var(--bad)}"
    "svg path{fill:none;stroke:currentColor}svg .grid{stroke:var(--line)}"
    "svg .error{stroke:var(--text);stroke-width:1.2;opacity:.75}"
    "svg .bar{stroke:none}svg .light{opacity:.5}"
    "@media print{.lane{break-inside:avoid}}";

void hz_page_begin(FILE *out, const char *title) {
  fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>",
        out);
  hz_page_text(out, title);
  fprintf(out, "</title>\n<style>\n%s\n%s\n%s\n%s\n", colours, texts, tables, figures);
}

void hz_page_body(FILE *out) {
  fputs("</style>\n</head>\n<body>\n", out);
}

void hz_page_end(FILE *out) {
  fputs("</body>\n</html>\n", out);
}
