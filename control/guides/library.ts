import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { Marked, type Token, type Tokens } from 'marked'
import { escapeXml } from '../../core/domain/text/xml.ts'
import type { SearchEntry } from './search.ts'

/** A page of the documentation. `html` is its body without the frame. */
interface Guide {
  readonly name: string
  readonly title: string
  readonly html: string
  readonly sections: readonly Section[]
}

/** The part of a page below one heading. `anchor` is empty above the first one. */
interface Section {
  readonly anchor: string
  readonly heading: string
  readonly text: string
}

/** Folders below `docs`, and the name of each one's README. */
const FOLDERS = { guides: 'guides', '': 'docs', decisions: 'decisions' } as const

const slugOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} -]/gu, '')
    .trim()
    .replaceAll(' ', '-')

/** Returns the text of a token and of everything in it. */
function textOf(token: Token): string {
  const inner = 'tokens' in token && token.tokens ? token.tokens : undefined
  if (token.type === 'table') {
    const { header, rows } = token as Tokens.Table
    return [header, ...rows].map(row => row.map(cell => cell.text).join(' ')).join('\n')
  }
  if (token.type === 'list') return (token as Tokens.List).items.map(item => textOf(item)).join('\n')
  if (inner) return inner.map(textOf).join('')
  return 'text' in token ? String(token.text) : ''
}

function sectionsOf(tokens: readonly Token[], title: string): Section[] {
  const sections: { anchor: string; heading: string; text: string }[] = [{ anchor: '', heading: title, text: '' }]
  for (const token of tokens) {
    const last = sections.at(-1)
    if (token.type === 'heading' && token['depth'] > 1) {
      const heading = textOf(token)
      sections.push({ anchor: slugOf(heading), heading, text: '' })
    } else if (token.type !== 'heading' && token.type !== 'html' && last) last.text += `${textOf(token)}\n`
  }
  return sections
}

/** Returns the address of what a page links to; undefined for a file of the sources, which is not served. */
function addressOf(href: string): string | undefined {
  if (/^(https?:|\/|#)/.test(href)) return href
  const [, path = '', anchor = ''] = /^([^#]*)(#.*)?$/.exec(href) ?? []
  if (!path.endsWith('.md')) return undefined
  const name = basename(path, '.md')
  if (name === 'README') return path.includes('decisions') ? `/docs/guides/decisions${anchor}` : undefined
  return name === name.toUpperCase() ? undefined : `/docs/guides/${name}${anchor}`
}

function render(name: string, text: string): Guide {
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth }) {
        const id = slugOf(tokens.map(textOf).join(''))
        return `<h${depth} id="${escapeXml(id)}">${this.parser.parseInline(tokens)}</h${depth}>\n`
      },
      link({ href, tokens }) {
        const label = this.parser.parseInline(tokens)
        const address = addressOf(href)
        return address === undefined ? label : `<a href="${escapeXml(address)}">${label}</a>`
      },
      table(token) {
        const row = (cells: Tokens.TableCell[], tag: string) =>
          `<tr>${cells.map(cell => `<${tag}>${this.parser.parseInline(cell.tokens)}</${tag}>`).join('')}</tr>`
        const rows = token.rows.map(cells => row(cells, 'td')).join('\n')
        return `<div class="wide"><table><thead>${row(token.header, 'th')}</thead><tbody>${rows}</tbody></table></div>\n`
      },
    },
  })
  const tokens = marked.lexer(text)
  const first = tokens.find(token => token.type === 'heading')
  const title = first ? textOf(first) : name
  return { name, title, html: marked.parser(tokens), sections: sectionsOf(tokens, title) }
}

/** The documentation of a tree, read from its folder `docs` at the first request. */
export class Library {
  readonly #files = new Map<string, string>()
  readonly #guides = new Map<string, Guide>()

  /** Lists the pages below a folder. A page of an earlier folder of FOLDERS wins over one of the same name. */
  constructor(folder: string) {
    for (const [below, own_name] of Object.entries(FOLDERS)) {
      const path = join(folder, below)
      if (!existsSync(path)) continue
      for (const file of readdirSync(path).sort()) {
        if (!file.endsWith('.md')) continue
        const name = file === 'README.md' ? own_name : basename(file, '.md')
        if (!this.#files.has(name)) this.#files.set(name, join(path, file))
      }
    }
  }

  get names(): readonly string[] {
    return [...this.#files.keys()]
  }

  guide(name: string): Guide | undefined {
    const known = this.#guides.get(name)
    if (known) return known
    const file = this.#files.get(name)
    if (file === undefined) return undefined
    const guide = render(name, readFileSync(file, 'utf8'))
    this.#guides.set(name, guide)
    return guide
  }

  /** Lists the sections of all pages, for a search. */
  *entries(): Generator<SearchEntry> {
    for (const name of this.names) {
      const guide = this.guide(name)
      if (guide === undefined) continue
      for (const { anchor, heading, text } of guide.sections) {
        const address = `/docs/guides/${name}${anchor === '' ? '' : `#${anchor}`}`
        yield { address, title: guide.title, heading, text }
      }
    }
  }
}
