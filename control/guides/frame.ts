import type { Context } from 'koa'
import { escapeXml } from '../../core/domain/text/xml.ts'

/** An entry of the menu beside every page. */
export interface MenuGroup {
  readonly group: string
  readonly links: readonly { readonly path: string; readonly title: string }[]
}

const STYLE = `
:root{color-scheme:light dark;--ink:#1c2330;--paper:#fff;--soft:#f3f5f8;--line:#d9dee6;--accent:#1a5fb4}
@media(prefers-color-scheme:dark){:root{--ink:#dfe4ec;--paper:#14181f;--soft:#1d232d;--line:#343c49;--accent:#8ab8f0}}
*{box-sizing:border-box}
body{margin:0;font:16px/1.6 system-ui,sans-serif;color:var(--ink);background:var(--paper)}
a{color:var(--accent)}
.all{display:grid;grid-template-columns:16rem minmax(0,1fr);max-width:80rem;margin:0 auto}
nav{padding:1.5rem 1rem;border-right:1px solid var(--line);font-size:.93rem}
nav b{display:block;margin:1.1rem 0 .3rem}
nav a{display:block;padding:.15rem 0;text-decoration:none}
nav a[aria-current]{font-weight:600}
main{padding:1.5rem 2rem 4rem;min-width:0}
form{display:flex;gap:.4rem}
input,button{font:inherit;padding:.4rem .6rem;border:1px solid var(--line);border-radius:4px;color:inherit}
input{flex:1;min-width:0;background:var(--paper)}
button{background:var(--soft)}
h1{line-height:1.25}h2{margin-top:2.2rem;padding-top:.4rem;border-top:1px solid var(--line)}
code{background:var(--soft);padding:.1em .3em;border-radius:3px;font-size:.9em;overflow-wrap:anywhere}
pre{background:var(--soft);padding:.8rem 1rem;border-radius:6px;overflow-x:auto}pre code{padding:0;overflow-wrap:normal}
.wide{overflow-x:auto}
table{border-collapse:collapse;margin:1rem 0}
td,th{padding:.35rem .9rem .35rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
blockquote{margin:1rem 0;padding:.1rem 1rem;border-left:3px solid var(--accent);background:var(--soft)}
@media(max-width:50rem){.all{display:block}nav{border-right:0;border-bottom:1px solid var(--line)}main{padding:1rem}}
@media print{nav{display:none}.all{display:block}}
`

/** Returns a whole page of the documentation. `body` is HTML; `path` is its own address, which the menu marks. */
export function framed(title: string, body: string, menu: readonly MenuGroup[], path: string, question = ''): string {
  const links = menu.map(({ group, links }) => {
    const items = links.map(link => {
      const here = link.path === path ? ' aria-current="page"' : ''
      return `<a href="${escapeXml(link.path)}"${here}>${escapeXml(link.title)}</a>`
    })
    return `<b>${escapeXml(group)}</b>${items.join('')}`
  })
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escapeXml(title)} · Strowger</title><link rel="icon" href="data:,"><style>${STYLE}</style>
</head><body><div class="all">
<nav aria-label="Documentation">
<form action="/docs/search" role="search"><input name="q" type="search" aria-label="Search the documentation"
placeholder="Search" value="${escapeXml(question)}"><button>Search</button></form>
${links.join('\n')}
<b>Elsewhere</b><a href="/console/">Console</a>
</nav>
<main>
${body}
</main></div></body></html>
`
}

const POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

/** Answers with a page that loads nothing and runs no script. */
export function sendPage(ctx: Context, page: string, status = 200): void {
  ctx.status = status
  ctx.set('Content-Security-Policy', POLICY)
  ctx.type = 'text/html; charset=utf-8'
  ctx.body = page
}
