import type { Route } from '../../../control/http/route.ts'
import { API_EXAMPLES, type ApiExample } from '../../../control/openapi/examples.ts'
import { type Answer, type ControlPlane, freshKey } from '../../support/control-plane.ts'
import { type Kitchen, operatorEtag, operatorRecipeOf } from './operator-recipes.ts'
import { type Made, nameOf, recipeOf } from './recipes.ts'

/** Records the examples of the OpenAPI documents, and revives them for another world. */

/** Matches values that differ in each test world: ids, phone numbers, address ranges, names with a counter. */
const LIVING = new RegExp(
  `^(?:${[
    /[a-z]{3}_[0-9a-f]{8}-.*/,
    /[A-Z]{2}[0-9a-f]{32}/,
    /\+?\d{7,15}/,
    /[\d.]+\/\d+/,
    /(?:Trunk|Policy|App|Branch) \d+|Head office|Branch Kano/,
    /https:\/\/app\.example\.com\/hook\/\d+/,
  ]
    .map(({ source }) => source)
    .join('|')})$`,
)

/** Returns `wanted` with each LIVING value replaced by the value in the same place of `real`. */
function revived(wanted: unknown, real: unknown): unknown {
  if (typeof wanted === 'string') return LIVING.test(wanted) && typeof real === 'string' ? real : wanted
  if (Array.isArray(wanted)) return wanted.map((item, at) => revived(item, Array.isArray(real) ? real[at] : undefined))
  if (typeof wanted !== 'object' || wanted === null) return wanted
  const from = (real ?? {}) as Record<string, unknown>
  return Object.fromEntries(Object.entries(wanted).map(([name, item]) => [name, revived(item, from[name])]))
}

/** Returns the published example of a route with values that live in this world in place of the fixed ones. */
export async function exampleNow(w: ControlPlane, route: Route): Promise<{ made: Made; example: ApiExample }> {
  const example = API_EXAMPLES[nameOf(route)]
  if (!example) throw new Error(`${nameOf(route)} has no example`)
  const made = await recipeOf(route)(w)
  return { made, example: { ...example, ...(example.body ? { body: revived(example.body, made.body) } : {}) } }
}

/** Records an example of the management API. */
export async function record(w: ControlPlane, route: Route): Promise<ApiExample> {
  const made = await recipeOf(route)(w)
  const example = route.example === undefined ? made.body : revived(route.example, made.body)
  const body = example as object | undefined
  return recorded(route, { ...made, ...(body === undefined ? {} : { body }) }, (path, body) =>
    w.ask(route.method.toUpperCase(), `/v1${path}`, {
      ...(body === undefined ? {} : { body }),
      headers: {
        ...(route.if_match !== undefined && made.etag !== undefined ? { 'If-Match': made.etag } : {}),
        ...(route.method === 'get' ? {} : { 'Idempotency-Key': freshKey() }),
      },
    }),
  )
}

/** Records an example of the operator API. */
export async function recordOperator(kitchen: Kitchen, route: Route): Promise<ApiExample> {
  const made = await operatorRecipeOf(route)(kitchen)
  const etag = await operatorEtag(kitchen, route, made)
  const query = new URLSearchParams(made.query).toString()
  const { params, body } = made
  const wish = { ...(params ? { params } : {}), ...(body ? { body } : {}), ...(query === '' ? {} : { query }) }
  return recorded(route, wish, (path, body) => kitchen.ask(route.method.toUpperCase(), path, body, etag))
}

/** Sends a request and records it. Fixed values replace ids, times and secrets, so that every recording is the same. */
async function recorded(
  route: Route,
  made: Pick<Made, 'params' | 'query'> & { readonly body?: object },
  ask: (path: string, body: object | undefined) => Promise<Answer>,
): Promise<ApiExample> {
  const { body } = made
  const path = route.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(made.params?.[name] ?? name))
  const answer = await ask(`${path}${made.query ? `?${made.query}` : ''}`, body)
  if (answer.status >= 300) throw new Error(`${nameOf(route)}: ${answer.status} ${answer.text}`)
  const tidy = tidier()
  return {
    ...(made.params ? { params: tidy(made.params) as Record<string, string> } : {}),
    ...(made.query === undefined ? {} : { query: tidy(made.query) as string }),
    ...(body === undefined ? {} : { body: tidy(body) }),
    status: answer.status,
    ...(answer.body === undefined ? {} : { response: tidy(shortened(answer.body)) }),
  }
}

const MAX_ITEMS = 2

/** Cuts every list to its first MAX_ITEMS items. */
function shortened(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, MAX_ITEMS).map(shortened)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, shortened(item)]))
}

const NAMES: Readonly<Record<string, string>> = {
  Trunk: 'Head office',
  Policy: 'Local calls',
  App: 'Reception',
  Branch: 'Branch Kano',
  Customer: 'Ikeja Traders',
}
const ONE_TIME = /^(digest_password|password|signing_secret|secret|token)$/
/** Counters of earlier requests. Their true values would change when another route gets an example. */
const COUNTERS = /^(total|total_all|version)$/
const FIXED: readonly [RegExp, string][] = [
  [/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\b/g, '2026-11-02T09:30:00.000Z'],
  [/^\d{4}-\d\d-\d\d$/, '2026-11-02'],
  [/^\d{4}-\d\d$/, '2026-11'],
  [/\b10\.\d+\.\d+\.0\/24\b/g, '203.0.113.0/24'],
  [/\ba\d+@example\.com\b/g, 'alerts@example.com'],
  [/\b[cn]\d+@customers\.example\b/g, 'office@customers.example'],
  [/\bSEC-\d{8}-[0-9A-F]{8}\b/g, 'SEC-20261102-53631EEA'],
  // The claims of a client token end with the time at which it expires.
  [/^ct1\.[\w-]+$/, 'ct1.eyJjIjoiYWRhIiwibiI6IisyMzQyMDEwMDAwMDAxIiwiZSI6MTc5NTc1NzIyOX0'],
  // A signature of Ed25519.
  [/^[\w-]{86}$/, '0wep3_RM5QbdCRO_one0bBZyGyHVJ5RfhWE7zPlK607M52QbZkHUiaDWh4aoYczftWa2omWgVy1ff6OsyH3NCQ'],
  [/\bt[0-9a-f]{15}\b/g, 't0123456789abcde'],
  [/\b[0-9a-f]{64}\b/g, 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'],
  [/https:\/\/app\.example\.com\/hook\/\d+/g, 'https://app.example.com/hook'],
  [/\+?23470\d{8}\b/g, '+2347000000001'],
  [/sk_live_[A-Z2-7]{12}/g, 'sk_live_ABCDEFGHIJKL'],
  [/stm_\d{4}-\d\d/g, 'stm_2026-11'],
  [/ok_live_[A-Z2-7]{12}_[A-Za-z0-9]+/g, 'ok_live_ABCDEFGHIJKL_shown-once-and-never-again'],
  [/ok_live_[A-Z2-7]{12}/g, 'ok_live_ABCDEFGHIJKL'],
  [/https?:\/\/127\.0\.0\.1:\d+/g, 'https://voice.example.com'],
  [/(?<=#|token=|downloads\/)[\w.-]{20,}/g, 'shown-once-and-never-again'],
]

function tidier(): (value: unknown, name?: string) => unknown {
  const known = new Map<string, string>()
  const hex = (found: string): string => {
    const given = known.get(found) ?? (known.size + 1).toString(16).padStart(12, '0')
    known.set(found, given)
    return given
  }
  const text = (value: string): string => {
    let tidy = value
      .replace(
        /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g,
        id => `00000000-0000-4000-8000-${hex(id)}`,
      )
      .replace(/(?<=\b(?:[A-Z]{2}|req_))[0-9a-f]{32}\b/g, id => hex(id).padStart(32, '0'))
      .replace(/\b(Trunk|Policy|App|Branch|Customer) \d+\b/g, (_, word: string) => NAMES[word] ?? word)
    for (const [pattern, fixed] of FIXED) tidy = tidy.replace(pattern, fixed)
    return tidy
  }
  const tidy = (value: unknown, name = ''): unknown => {
    if (typeof value === 'string') {
      if (ONE_TIME.test(name)) return 'shown-once-and-never-again'
      if (/_cursor$/.test(name)) return 'WyJuZXh0Il0'
      return text(value)
    }
    if (Array.isArray(value)) return value.map(item => tidy(item))
    if (typeof value === 'number' && COUNTERS.test(name)) return MAX_ITEMS
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, tidy(item, key)]))
  }
  return tidy
}

/** Returns the sorted field names of an answer, to compare answers from different worlds. */
export const fieldsOf = (value: unknown): string[] =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.keys(value).sort() : []
