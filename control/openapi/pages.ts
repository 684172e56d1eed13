import type { Context } from 'koa'
import { CALL_NUMBERS } from '../../core/domain/calls/call-numbers.ts'
import { isReason, REASONS, type Reason, type ReasonEntry } from '../../core/domain/reasons/index.ts'
import { escapeXml } from '../../core/domain/text/xml.ts'
import { framed, sendPage } from '../guides/frame.ts'
import type { Manual } from '../guides/pages.ts'
import type { Route } from '../http/route.ts'
import type { Services } from '../http/services.ts'
import { NUMBERS } from '../voice/errors.ts'
import { MANAGEMENT, OPERATOR, openApiDocument } from './document.ts'
import { viewerPages } from './viewer.ts'

const API_VERSION = '1.0.0'

type Page = (ctx: Context) => void | Promise<void>

interface Routes {
  readonly v1: readonly Route[]
  readonly operator: readonly Route[]
}

/** Serves the documents of both JSON APIs and `/docs`, each built from the routes at its first request. */
export function referencePages(routes: Routes, services: Services, manual: Manual): Readonly<Record<string, Page>> {
  const about = { base_url: services.settings.base_url, version: API_VERSION }
  const document = (make: () => object): Page => {
    const text = once(() => JSON.stringify(make(), null, 1))
    return ctx => {
      ctx.type = 'application/json; charset=utf-8'
      ctx.body = text()
    }
  }
  const contents = once(() => contentsOf(routes.v1, '/v1'))
  const operator_contents = once(() => contentsOf(routes.operator, '/operator/v1'))
  const reference = async (ctx: Context, title: string, body: string, status = 200): Promise<void> => {
    const page = framed(title, `<h1>${escapeXml(title)}</h1>\n${body}`, await manual.menu(), ctx.path)
    sendPage(ctx, page, status)
  }
  return {
    '/v1/openapi.json': document(() => openApiDocument(routes.v1, about, MANAGEMENT)),
    '/operator/v1/openapi.json': document(() => openApiDocument(routes.operator, about, OPERATOR)),
    '/docs/operator': ctx => reference(ctx, 'Endpoints for operators', operator_contents()),
    ...viewerPages(),
    '/docs/endpoints': ctx => reference(ctx, 'Endpoints', contents()),
    '/docs/errors': ctx => reference(ctx, 'Errors', errorList()),
    '/docs/errors/:code': ctx => {
      const code = (ctx as Context & { readonly params: { readonly code: string } }).params.code
      const body = errorPage(code)
      if (body !== null) return reference(ctx, code, body)
      return reference(ctx, 'No such error', '<p>There is no error of this name.</p>', 404)
    },
  }
}

/** Returns a function that makes its text at the first call and keeps it. */
function once(make: () => string): () => string {
  let made: string | undefined
  return () => {
    made ??= make()
    return made
  }
}

function contentsOf(routes: readonly Route[], prefix: string): string {
  const rows = routes.map(
    route =>
      `<tr><td><code>${route.method.toUpperCase()}</code></td><td><code>${prefix}${escapeXml(route.path)}</code></td>` +
      `<td>${escapeXml(route.summary)}</td><td>${route.scope ? `<code>${escapeXml(route.scope)}</code>` : ''}</td></tr>`,
  )
  return (
    `<p>The API as an OpenAPI 3.1 document: <a href="${prefix}/openapi.json">${prefix}/openapi.json</a>. ` +
    `Every error has a page: <a href="/docs/errors">errors</a>.</p>` +
    `<table><tr><th>Method</th><th>Path</th><th></th><th>Scope</th></tr>${rows.join('\n')}</table>`
  )
}

function errorList(): string {
  const rows = Object.keys(REASONS).map(
    reason => `<li><a href="/docs/errors/${reason}"><code>${reason}</code></a></li>`,
  )
  return `<ul>${rows.join('\n')}</ul>`
}

/** Returns the page of a reason or of an error number of the voice-calls API; null when there is none. */
function errorPage(code: string): string | null {
  if (isReason(code)) return reasonPage(code)
  if (!/^\d{5}$/.test(code)) return null
  const reasons = (Object.keys(REASONS) as Reason[]).filter(reason => {
    const { voice, sip_number } = REASONS[reason] as ReasonEntry
    return voice === Number(code) || sip_number === Number(code)
  })
  if (reasons.length > 0)
    return reasons.map(reason => `<h2><code>${reason}</code></h2>${reasonPage(reason)}`).join('\n')
  const of_calls = CALL_NUMBERS[Number(code)]
  if (of_calls !== undefined)
    return `<p>${escapeXml(of_calls)}</p><p>It appears in the events of a call, and in its callbacks as <code>ErrorCode</code>.</p>`
  if (!Object.hasOwn(NUMBERS, code)) return null
  const status = NUMBERS[Number(code) as keyof typeof NUMBERS]
  return `<p>Answered by the voice-calls API with HTTP status ${status}; the message names the field.</p>`
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
  const text = template.replace(/\{(\w+)\}/g, '⟨$1⟩')
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}
