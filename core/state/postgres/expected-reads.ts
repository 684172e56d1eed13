import { hash as digest } from 'node:crypto'
import { boundedMap } from '../../domain/bounded-map.ts'
import type { Row, Value } from '../procedures/query.ts'
import type { ProcedureName } from '../procedures/table.ts'
import type { BatchStatement } from './batch.ts'
import type { Read, ReadRows } from './known-reads.ts'
import { rowsOfJson, withNumbers, withParts } from './values.ts'

// A procedure asks for one read after the other, and most of them follow from its input and from what it has read: the
// row of the project, then that of its account, and so on. The reads of its last run of the same kind are therefore
// those of the next run, with other values. One statement asks for all of them. An expectation that is wrong costs a
// round trip: a procedure takes known rows for exactly the statement and the values that it asks (decision 1054).

type Path = readonly (string | number)[]

/** Where a value comes from. */
type Base =
  | { readonly input: Path }
  /** A column of the first row of an earlier read. */
  | { readonly read: number; readonly column: string }
  | { readonly constant: Value }

interface Source {
  readonly base: Base
  /** `instant`: the number as an ISO text. `digits`: the first `length` digits of a telephone number; null: all. */
  readonly form: 'plain' | 'instant' | { readonly digits: number | null }
}

interface ExpectedRead {
  readonly sql: string
  readonly sources: readonly Source[]
}

/** The places of the expected reads that are asked for, and the rows of the others. */
export interface Wanted {
  readonly at: readonly number[]
  readonly rows: readonly (readonly Row[] | undefined)[]
}

interface Text {
  readonly sql: string
  readonly sent: readonly Source[]
}

/** Parts of the reads that have a text of their own. Each text is prepared on each connection. */
const MOST_PARTS = 8

/** The reads that a procedure is expected to ask for, in one statement. */
export class Expected {
  readonly reads: readonly ExpectedRead[]
  /** What the run wrote, by statements. */
  readonly writes: readonly string[]
  readonly all: Wanted
  readonly #texts = new Map<string, Text>()

  constructor(reads: readonly ExpectedRead[], writes: readonly string[]) {
    this.reads = reads
    this.writes = writes
    this.all = { at: reads.map((_, at) => at), rows: [] }
  }

  /** Returns what is left to ask for where `find` knows rows. */
  wanted(input: unknown, find: (read: Read) => readonly Row[] | undefined): Wanted {
    const rows: (readonly Row[] | undefined)[] = []
    const at: number[] = []
    for (const [place, { sql, sources }] of this.reads.entries()) {
      const open = sources.some(({ base }) => 'read' in base && rows[base.read] === undefined)
      const found = open ? undefined : find({ sql, values: sources.map(source => valueFrom(source, input, rows)) })
      rows.push(found)
      if (found === undefined) at.push(place)
    }
    return this.#texts.size < MOST_PARTS || this.#texts.has(at.join()) ? { at, rows } : this.all
  }

  statement(input: unknown, { at, rows } = this.all): BatchStatement {
    const key = at.join()
    const text = this.#texts.get(key) ?? this.#textOf(at)
    this.#texts.set(key, text)
    return { sql: text.sql, values: text.sent.map(source => valueFrom(source, input, rows)) }
  }

  /** Returns the reads that a reply answers. */
  readsOf(json: string, input: unknown, { at, rows: known } = this.all): ReadRows[] {
    const rows = [...known]
    const answers = rowsOfJson(json) as (readonly Row[])[]
    for (const [answer, place] of at.entries()) rows[place] = answers[answer] ?? []
    return at.flatMap(place => {
      const read = this.reads[place]
      if (!read) return []
      const values = read.sources.map(source => valueFrom(source, input, rows))
      return [{ sql: read.sql, values, rows: rows[place] ?? [] }]
    })
  }

  #textOf(at: readonly number[]): Text {
    const sent: Source[] = []
    const parts = at.map(place => {
      const { sql, sources } = this.reads[place] ?? { sql: '', sources: [] }
      const read = withParts(withNumbers(sql), number => {
        const source = sources[number - 1]
        if (source && 'read' in source.base && at.includes(source.base.read)) return columnOf(source, source.base)
        sent.push(source ?? { base: { constant: null }, form: 'plain' })
        return `$${sent.length}`
      })
      return `r${place} as (${read})`
    })
    const rows = at.map(place => `coalesce((select json_agg(r${place}) from r${place}), '[]'::json)`)
    return { sql: `with ${parts.join(', ')} select json_build_array(${rows.join(', ')})`, sent }
  }
}

function columnOf({ form }: Source, { read, column }: Extract<Base, { readonly read: number }>): string {
  const value = `(select "${column}" from r${read} limit 1)`
  if (typeof form !== 'object') return value
  const digits = `ltrim(${value}, '+')`
  return form.digits === null ? digits : `left(${digits}, ${form.digits})`
}

function valueFrom({ base, form }: Source, input: unknown, answers: readonly (readonly Row[] | undefined)[]): Value {
  const value =
    'constant' in base
      ? base.constant
      : 'input' in base
        ? base.input.reduce<unknown>((of, name) => (of as Record<string | number, unknown> | null)?.[name], input)
        : answers[base.read]?.[0]?.[base.column]
  if (value === null || value === undefined) return null
  if (form === 'plain') return value as Value
  if (form === 'instant') return new Date(Number(value)).toISOString()
  const digits = String(value).replace(/^\+/, '')
  return form.digits === null ? digits : digits.slice(0, form.digits)
}

/** A text or a number in the input of a procedure. */
interface Leaf {
  readonly path: Path
  readonly value: string | number
}

/** Shorter texts are the same by accident. */
const TELLING_LENGTH = 4
const TELLING_NUMBER = 1e9
const TELEPHONE = /^\+?\d{7,18}$/
const DIGITS = /^\d+$/

/** The statements of a run. */
interface Made {
  readonly reads: readonly ReadRows[]
  readonly writes: readonly string[]
}

/** Finds out where the values of a run's reads came from. */
class Origins {
  readonly #leaves: readonly Leaf[]
  readonly #reads: readonly ReadRows[]
  readonly #writes: readonly string[]
  /** The telephone number whose digits were used last. */
  #telephone: { readonly base: Base; readonly digits: string } | null = null

  constructor(input: unknown, { reads, writes }: Made) {
    this.#leaves = [...leavesOf(input, [])]
    this.#reads = reads
    this.#writes = writes
  }

  expected(): Expected {
    return new Expected(
      this.#reads.map(({ sql, values }, at) => {
        const longest = values.filter(value => typeof value === 'string' && DIGITS.test(value)) as string[]
        this.#noteTelephone(longest.toSorted((one, other) => other.length - one.length)[0] ?? '', at)
        return { sql, sources: values.map(value => this.#sourceOf(value, at)) }
      }),
      this.#writes,
    )
  }

  #sourceOf(value: Value, at: number): Source {
    const constant: Source = { base: { constant: value }, form: 'plain' }
    if (typeof value === 'number' ? value < TELLING_NUMBER : value === null) return constant
    const leaf = this.#leaves.find(one => one.value === value)
    const text = String(value)
    if (leaf && (typeof value === 'number' || text.length >= TELLING_LENGTH))
      return { base: { input: leaf.path }, form: 'plain' }
    const digits = this.#telephone?.digits
    if (this.#telephone && digits?.startsWith(text))
      return { base: this.#telephone.base, form: { digits: text === digits ? null : text.length } }
    if (text.length < TELLING_LENGTH) return constant
    const instant = this.#leaves.find(one => typeof one.value === 'number' && isInstant(text, one.value))
    if (instant) return { base: { input: instant.path }, form: 'instant' }
    const column = this.#columnWith(at, of => of === value)
    return column ? { base: column, form: 'plain' } : constant
  }

  /** Notes the telephone number that has these first digits. */
  #noteTelephone(first: string, at: number): void {
    if (first.length < TELLING_LENGTH || this.#telephone?.digits.startsWith(first)) return
    const has = (of: Value): boolean =>
      typeof of === 'string' && TELEPHONE.test(of) && of.replace(/^\+/, '').startsWith(first)
    const leaf = this.#leaves.find(({ value }) => has(value))
    const base = leaf ? { input: leaf.path } : this.#columnWith(at, has)
    const value = leaf?.value ?? (base && 'read' in base ? this.#reads[base.read]?.rows[0]?.[base.column] : null)
    if (base) this.#telephone = { base, digits: String(value).replace(/^\+/, '') }
  }

  #columnWith(at: number, has: (value: Value) => boolean): Extract<Base, { readonly read: number }> | null {
    for (const [read, { rows }] of this.#reads.slice(0, at).entries())
      for (const [column, value] of Object.entries(rows[0] ?? {})) if (has(value)) return { read, column }
    return null
  }
}

const isInstant = (text: string, ms: number): boolean =>
  text.length === 24 && text.endsWith('Z') && Date.parse(text) === ms

function* leavesOf(value: unknown, path: Path): Generator<Leaf> {
  if (typeof value === 'string' || typeof value === 'number') yield { path, value }
  else if (typeof value === 'object' && value !== null)
    for (const [name, part] of Object.entries(value)) yield* leavesOf(part, [...path, name])
}

/** What the inputs of procedures have in common. */
interface AnyInput {
  readonly sid?: string
  readonly call_sid?: string
  readonly call?: { readonly sid: string }
  readonly request?: string | AnyRequest
  readonly requests?: readonly AnyRequest[]
  readonly steps?: readonly { readonly step: string }[]
}

interface AnyRequest {
  readonly call_sid: string
  readonly part: string
  readonly project_id: string
  readonly service: { readonly id: string }
}

/** Returns the call that a procedure is for; null: it is for none. */
export function callOf(input: unknown): string | null {
  if (typeof input !== 'object' || input === null) return null
  const { sid, call_sid, call, ...given } = input as AnyInput
  return sid ?? call_sid ?? call?.sid ?? requestsOf(given)[0]?.call_sid ?? null
}

const requestsOf = ({ requests, request }: AnyInput): readonly AnyRequest[] =>
  requests ?? (typeof request === 'object' ? [request] : [])

/** More reads than a call of a function of PostgreSQL may have are asked for one by one. */
const MOST_READS = 60
const MOST_KINDS = 5000
/** One has some 10 KB. Those of the services of a project are mostly the same. */
const MOST_DIFFERENT = 500

/** What the last runs of procedures have read, by kind of run. */
export class ExpectedReads {
  /** Keys of `#different`, by kind. */
  readonly #kinds = boundedMap<string, string>(MOST_KINDS)
  readonly #different = boundedMap<string, Expected>(MOST_DIFFERENT)

  /** Returns the reads of the last run that was most like this one. */
  of(name: ProcedureName, input: unknown): Expected | null {
    for (const kind of kindsOf(name, input)) {
      const known = this.#different.get(this.#kinds.get(kind) ?? '')
      if (known) return known
    }
    return null
  }

  learn(name: ProcedureName, input: unknown, made: Made): void {
    if (made.reads.length === 0 || made.reads.length > MOST_READS) return
    const expected = new Origins(input, made).expected()
    const key = digest('sha256', JSON.stringify([expected.reads, expected.writes]))
    if (!this.#different.has(key)) this.#different.set(key, expected)
    for (const kind of kindsOf(name, input)) this.#kinds.set(kind, key)
  }
}

/** Names the kinds of a run: calls of one service, of one project, and those with the same steps. */
function kindsOf(name: ProcedureName, input: unknown): string[] {
  if (typeof input !== 'object' || input === null) return [name]
  const { steps = [], ...given } = input as AnyInput
  const requests = requestsOf(given)
  if (requests.length === 0) return [`${name} ${steps.map(({ step }) => step).join(' ')}`]
  const kind = (of: (request: AnyRequest) => string) =>
    `${name} ${requests.map(request => `${request.part} ${of(request)}`).join(' ')}`
  return [kind(({ service }) => service.id), kind(({ project_id }) => project_id)]
}
