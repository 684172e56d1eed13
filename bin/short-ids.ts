import { StartRefused } from '../core/runtime/start-refused.ts'
import type { Db } from '../core/state/index.ts'

/** Where the ids of what commands name are. */
const TABLES = {
  organization_id: 'organization',
  project_id: 'project',
  carrier_id: 'carrier',
  price_book_id: 'price_book',
  number_id: 'number',
  member_id: 'member',
  trunk_id: 'trunk',
  alert_id: 'alert',
  containment_id: 'containment',
  key_id: 'operator_key',
  node_id: 'node',
} as const
type Name = keyof typeof TABLES

/** What an id begins with: fewer characters say too little. */
const BEGINNING = /^([a-z]{2,4}_[0-9a-f-]{4,}|[0-9a-f]{8}-[0-9a-f-]{3,})$/
const CALL = /^CA[0-9a-f]{4,32}$/

/**
 * Returns the fields of a request with whole ids: a person types the first characters that a table showed. What is
 * unknown stays as it is, and the endpoint says so. @throws StartRefused when several begin so
 */
export async function withWholeIds<T extends object>(db: Db, fields: T): Promise<T> {
  const whole = { ...fields } as Record<string, unknown>
  for (const [name, value] of Object.entries(fields))
    if (name in TABLES && typeof value === 'string' && BEGINNING.test(value))
      whole[name] = await wholeId(db, name as Name, value)
  return whole as T
}

async function wholeId(db: Db, name: Name, text: string): Promise<string> {
  const rows = await db.selectFrom(TABLES[name]).select('id').where('id', 'like', `${text}%`).limit(2).execute()
  return onlyOne(
    text,
    rows.map(({ id }) => id),
  )
}

/** Returns the sid of the call that begins so. @throws StartRefused when several do */
export async function wholeCallSid(db: Db, text: string): Promise<string> {
  if (!CALL.test(text)) return text
  const rows = await db.selectFrom('call').select('sid').where('sid', 'like', `${text}%`).limit(2).execute()
  return onlyOne(
    text,
    rows.map(({ sid }) => sid),
  )
}

function onlyOne(text: string, found: readonly string[]): string {
  if (found.length > 1 && !found.includes(text))
    throw new StartRefused(`several ids begin with ${text}, such as ${found.join(' and ')}: type more of it`)
  return found.length === 1 ? (found[0] ?? text) : text
}
