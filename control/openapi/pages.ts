import { STATUS_CODES } from 'node:http'
import type { Context } from 'koa'
import { CALL_NUMBERS } from '../../core/domain/calls/call-numbers.ts'
import { isReason, REASONS, type Reason, type ReasonEntry, templateInWords } from '../../core/domain/reasons/index.ts'
import { escapeXml } from '../../core/domain/text/xml.ts'
import { framed, sendPage } from '../guides/frame.ts'
import type { Manual } from '../guides/pages.ts'
import type { SearchEntry } from '../guides/search.ts'
import type { Route } from '../http/route.ts'
import { NUMBERS } from '../voice/errors.ts'
import type { VoiceRoute } from '../voice/route.ts'
import { MANAGEMENT, OPERATOR, openApiDocument } from './document.ts'
import { asDocument, contentsPage, type Document, listedOf, tagPage } from './reference.ts'
import { viewerPages } from './viewer.ts'
import { voiceDocument } from './voice.ts'

const API_VERSION = '1.0.0'

type Page = (ctx: Context) => void | Promise<void>

interface Routes {
  readonly v1: readonly Route[]
  readonly operator: readonly Route[]
  readonly voice: readonly VoiceRoute[]
}

/** An API with its document: where the document and the pages made from it are served. */
interface Reference {
  readonly title: string
  readonly file: string
  readonly address: string
  readonly document: () => Document
}

/** Returns the references of the three APIs. A document is built from the routes when it is first asked for. */
export function referencesOf(routes: Routes, base_url: string): readonly Reference[] {
  const about = { base_url, version: API_VERSION }
  const made = (file: string, address: string, title: string, make: () => object): Reference => ({
    file,
    address,
    title,
    document: once(() => asDocument(make() as Record<string, unknown>)),
  })
  return [
    made('/v1/openapi.json', '/docs/endpoints', 'Endpoints', () => openApiDocument(routes.v1, about, MANAGEMENT)),
    made('/operator/v1/openapi.json', '/docs/operator', 'Endpoints for operators', () =>
      openApiDocument(routes.operator, about, OPERATOR),
    ),
    made('/2010-04-01/openapi.json', '/docs/voice', 'Endpoints of the voice-calls API', () =>
      voiceDocument(routes.voice, about),
    ),
  ]
}

/** Returns the operations of an API as a search finds them. */
export const searchEntries = ({ title, address, document }: Reference): SearchEntry[] =>
  listedOf(document()).map(({ method, path, page, anchor, summary, text }) => ({
    address: `${address}/${page}#${anchor}`,
    title,
    heading: `${method} ${path}`,
    text: `${summary}. ${text}`,
  }))

/** Serves the documents of the APIs, and `/docs` with the pages made from them. */
export function referencePages(references: readonly Reference[], manual: Manual): Readonly<Record<string, Page>> {
  const reference = async (ctx: Context, title: string, body: string, status = 200): Promise<void> => {
    const page = framed(title, `<h1>${escapeXml(title)}</h1>\n${body}`, await manual.menu(), ctx.path)
    sendPage(ctx, page, status)
  }
  const pagesOf = ({ title, file, address, document }: Reference): Record<string, Page> => {
    const text = once(() => JSON.stringify(document(), null, 1))
    const contents = once(() => contentsPage(document(), address, file))
    return {
      [file]: ctx => {
        ctx.type = 'application/json; charset=utf-8'
        ctx.body = text()
      },
      [address]: ctx => reference(ctx, title, contents()),
      [`${address}/:tag`]: ctx => {
        const { tag } = (ctx as Context & { readonly params: { readonly tag: string } }).params
        const body = tagPage(document(), tag)
        if (body !== null) return reference(ctx, `${title}: ${tag}`, body)
        return reference(ctx, 'No such page', '<p>The menu lists all pages.</p>', 404)
      },
    }
  }
  return {
    ...Object.assign({}, ...references.map(pagesOf)),
    ...viewerPages(),
    '/docs/errors': ctx => reference(ctx, 'Errors', errorList()),
    '/docs/errors/:code': ctx => {
      const code = (ctx as Context & { readonly params: { readonly code: string } }).params.code
      const body = errorPage(code)
      if (body !== null) return reference(ctx, code, body)
      return reference(ctx, 'No such error', '<p>There is no error of this name.</p>', 404)
    },
  }
}

/** Returns a function that makes its value at the first call and keeps it. */
function once<T>(make: () => T): () => T {
  let made: T | undefined
  return () => {
    made ??= make()
    return made
  }
}

/** Every number of an error with the sentences of what it stands for. */
const errorNumbers = once(() => {
  const sentences = new Map<number, string[]>()
  const add = (number: number | null, text: string): void => {
    if (number !== null) sentences.set(number, [...(sentences.get(number) ?? []), text])
  }
  for (const entry of Object.values<ReasonEntry>(REASONS))
    for (const number of new Set([entry.voice, entry.sip_number])) add(number, sentence(entry.sentence))
  for (const [number, text] of Object.entries(CALL_NUMBERS)) add(Number(number), text)
  for (const [number, status] of Object.entries(NUMBERS))
    if (!sentences.has(Number(number))) add(Number(number), `${STATUS_CODES[status]}; the message names the field.`)
  return new Map([...sentences].sort(([a], [b]) => a - b))
})

function errorList(): string {
  const row = (name: string, text: string): string =>
    `<tr><td><a href="/docs/errors/${name}"><code>${name}</code></a></td><td>${escapeXml(text)}</td></tr>`
  const reasons = Object.entries<ReasonEntry>(REASONS).map(([name, entry]) => row(name, sentence(entry.sentence)))
  const numbers = [...errorNumbers()].map(([number, texts]) => row(String(number), texts[0] ?? ''))
  return (
    '<p>A refusal has a reason, which is the <code>code</code> of problem documents. The voice-calls API, callbacks and ' +
    `events of calls have numbers.</p><h2 id="reasons">Reasons</h2><table>${reasons.join('\n')}</table>` +
    `<h2 id="numbers">Numbers</h2><table>${numbers.join('\n')}</table>`
  )
}

/** Returns the page of a reason or of an error number; null when there is none. */
function errorPage(code: string): string | null {
  if (isReason(code)) return reasonPage(code)
  const number = Number(code)
  const texts = /^\d{5}$/.test(code) ? errorNumbers().get(number) : undefined
  if (texts === undefined) return null
  const reasons = (Object.keys(REASONS) as Reason[]).filter(reason => {
    const { voice, sip_number } = REASONS[reason] as ReasonEntry
    return voice === number || sip_number === number
  })
  const of_calls = CALL_NUMBERS[number]
  const status = NUMBERS[number as keyof typeof NUMBERS] as number | undefined
  return [
    ...(of_calls === undefined
      ? []
      : [
          `<p>${escapeXml(of_calls)}</p><p>It appears in the events of a call, in its script, and in its callbacks as ` +
            '<code>ErrorCode</code>. <a href="/docs/guides/markup">Markup</a> has the values that each attribute takes.</p>',
        ]),
    ...(status === undefined
      ? []
      : [`<p>The voice-calls API answers with HTTP status ${status}; the message names the field.</p>`]),
    ...reasons.map(reason => `<h2><code>${reason}</code></h2>${reasonPage(reason)}`),
  ].join('\n')
}

function reasonPage(reason: Reason): string {
  const entry = REASONS[reason] as ReasonEntry
  const facts: [string, string | number | null][] = [
    ['HTTP status', entry.http],
    ['SIP code', entry.sip],
    ['Voice-calls API', entry.voice === null ? null : `${entry.voice} (HTTP ${entry.voice_http})`],
    ['Number for SIP calls', entry.sip_number],
    ['Counts as the fault of', entry.blame],
  ]
  const rows = facts
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `<tr><th>${name}</th><td>${escapeXml(String(value))}</td></tr>`)
  return `<p>${escapeXml(sentence(entry.sentence))}</p><p><b>What to do:</b> ${escapeXml(entry.mend)}</p><table>${rows.join('')}</table>`
}

/** Returns a reason's sentence with visible placeholders. */
const sentence = (template: string): string => {
  const text = templateInWords(template).replace(/\{(\w+)\}/g, '⟨$1⟩')
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}
