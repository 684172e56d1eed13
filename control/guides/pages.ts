import { join } from 'node:path'
import type { Context } from 'koa'
import { escapeXml } from '../../core/domain/text/xml.ts'
import { TREE } from '../../core/runtime/tree.ts'
import { CONTENTS, GENERATED } from './contents.ts'
import { framed, type MenuGroup, sendPage } from './frame.ts'
import type { Library } from './library.ts'
import type { Found, SearchEntry } from './search.ts'

type Page = (ctx: Context) => Promise<void>

/** Longer questions find nothing that shorter ones do not. */
const MOST_QUESTION = 200

const addressOf = (name: string): string => `/docs/guides/${name}`

/** The documentation of a running process. */
export interface Manual {
  readonly library: () => Promise<Library>
  readonly find: (question: string) => Promise<readonly Found[]>
  /** The menu beside every page. Pages that the tree lacks are left out. */
  readonly menu: () => Promise<readonly MenuGroup[]>
}

/** Entries of a search that come from elsewhere: the operations of an API. */
type Elsewhere = () => readonly SearchEntry[]

/** Reads the documentation below a folder. Renderer and index are loaded with the first page that somebody reads. */
export function createManual(elsewhere: Elsewhere, folder = join(TREE, 'docs')): Manual {
  let loaded: Promise<Library> | undefined
  const library = (): Promise<Library> => {
    loaded ??= import('./library.ts').then(({ Library }) => new Library(folder))
    return loaded
  }
  const menu = async () => {
    const pages = await library()
    const guides = CONTENTS.map(({ group, pages: names }) => ({
      group,
      links: names.flatMap(name => {
        const guide = pages.guide(name)
        return guide ? [{ path: addressOf(name), title: guide.title }] : []
      }),
    }))
    return [...guides, { group: 'From the code', links: GENERATED }]
  }
  let search: Promise<(question: string) => readonly Found[]> | undefined
  const find = async (question: string) => {
    search ??= Promise.all([library(), import('./search.ts')]).then(([pages, { searchOver }]) =>
      searchOver([...pages.entries(), ...elsewhere()]),
    )
    return (await search)(question)
  }
  return { library, find, menu }
}

/** Serves the guides, the references that are files, and a search over both. None of it runs a script. */
export const guidePages = ({ library, find, menu }: Manual): Readonly<Record<string, Page>> => ({
  '/docs/guides': async ctx => {
    const groups = (await menu()).map(({ group, links }) => {
      const items = links.map(({ path, title }) => `<li><a href="${path}">${escapeXml(title)}</a></li>`)
      return `<h2>${escapeXml(group)}</h2><ul>${items.join('')}</ul>`
    })
    sendPage(ctx, framed('Documentation', `<h1>Documentation</h1>${groups.join('')}`, await menu(), '/docs/guides'))
  },
  '/docs/guides/:name': async ctx => {
    const { name } = (ctx as Context & { readonly params: { readonly name: string } }).params
    const guide = (await library()).guide(name)
    if (guide) return sendPage(ctx, framed(guide.title, guide.html, await menu(), addressOf(name)))
    const body = '<h1>No such page</h1><p>The menu lists all pages.</p>'
    sendPage(ctx, framed('No such page', body, await menu(), ''), 404)
  },
  '/docs/search': async ctx => {
    const asked = new URLSearchParams(ctx.querystring).get('q')?.trim().slice(0, MOST_QUESTION) ?? ''
    const found = asked === '' ? [] : await find(asked)
    sendPage(ctx, framed(`Search: ${asked}`, results(asked, found), await menu(), '', asked))
  },
})

function results(asked: string, found: readonly Found[]): string {
  const items = found.map(
    ({ address, title, heading, excerpt }) =>
      `<li><a href="${escapeXml(address)}">${escapeXml(heading)}</a>` +
      ` <small>${escapeXml(title)}</small><br>${escapeXml(excerpt)}</li>`,
  )
  const none = asked === '' ? 'Type words to find.' : `No page holds “${escapeXml(asked)}”.`
  return `<h1>Search</h1>${items.length === 0 ? `<p>${none}</p>` : `<ol>${items.join('\n')}</ol>`}`
}
