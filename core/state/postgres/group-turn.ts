import { StateError } from '../port.ts'
import { TurnTally } from '../procedures/ceilings/turn-tally.ts'
import { FactsChanged, type Row } from '../procedures/query.ts'
import type { ProcedureName } from '../procedures/table.ts'
import type { BatchReply, BatchStatement } from './batch.ts'
import { callOf, type Expected, type ExpectedReads, type Wanted } from './expected-reads.ts'
import type { KeptReads } from './kept-reads.ts'
import { Drawn, KnownReads, namesTallied, type Read, type ReadRows, TurnReads, Written } from './known-reads.ts'
import { COMMIT, type Link } from './link.ts'
import { type AskedStatement, ProcedureRun, WRITES, type Write } from './run-procedure.ts'
import { turnStatements } from './turns.ts'
import { rowsOfJson, withNumbers, withNumbersAfter } from './values.ts'

/** A procedure that shares a turn with others. */
export interface GroupMember {
  readonly name: ProcedureName
  readonly input: unknown
}

export type MemberOutcome = { readonly value: unknown } | { readonly error: unknown }

/** A procedure has failed after some of its writes were sent: nothing of the turn can be kept. */
export class BrokenTurn extends Error {
  override readonly name = 'BrokenTurn'
  /** The procedure at fault; null: it may be any of the turn. */
  readonly member: GroupMember | null
  constructor(member: GroupMember | null, cause: unknown) {
    super('a procedure has failed after some of its writes', { cause })
    this.member = member
  }
}

/** What is known of a member's reads, and which of them it is expected to make. */
interface Prepared {
  readonly known: KnownReads
  readonly expected: Expected | null
  readonly of_call: string | null
  /** Reads that its own writes have made untrue. */
  readonly forgotten: Read[]
  /** Its expected reads were made with the beginning of the turn. */
  readonly ahead: boolean
}

/**
 * A transaction with the turn of writers in which procedures run one after the other. The reads that each is expected
 * to make are asked for together, most of them with the beginning of the transaction. Writes wait for the next read or
 * the commit, and travel with it.
 */
export class GroupTurn {
  readonly #link: Link
  readonly #expected: ExpectedReads
  readonly #kept: KeptReads
  readonly #prepared = new Map<GroupMember, Prepared>()
  readonly #written = new Written()
  readonly #reads = new TurnReads()
  readonly #drawn = new Drawn()
  readonly #tally = new TurnTally()
  readonly #unsent: Write[] = []
  #now_ms = 0
  #begun_at = 0

  constructor(link: Link, expected: ExpectedReads, kept: KeptReads) {
    this.#link = link
    this.#expected = expected
    this.#kept = kept
  }

  /** Begins the transaction when it has its turn within `within_ms`. @throws StateError */
  async begin(members: readonly GroupMember[], within_ms: number): Promise<void> {
    const made: Ahead[] = []
    const will_write = new Written()
    for (const member of members) {
      const of_call = callOf(member.input)
      const expected = this.#expected.of(member.name, member.input)
      const known = new KnownReads()
      // What earlier members will write is read after they have run.
      const ahead = expected !== null && !expected.reads.some(({ sql }) => will_write.concerns(sql, of_call))
      this.#prepared.set(member, { known, expected, of_call, forgotten: [], ahead })
      if (ahead) {
        const wanted = expected.wanted(member.input, read => this.#kept.find(read))
        made.push({ member, known, expected, wanted })
      }
      for (const sql of expected?.writes ?? []) will_write.add(sql, of_call)
    }
    const begins = turnStatements(within_ms)
    const replies = await this.#link.batch([...begins, ...statementsOf(made)])
    const [now_ms, version = ''] = textOf(replies[begins.length - 1]).split(' ')
    this.#now_ms = Number(now_ms)
    this.#begun_at = performance.now()
    const is_true = this.#kept.isOf(version)
    this.#readAhead(is_true ? made : made.filter(isWhole), replies.slice(begins.length), made)
    if (is_true) return
    // The configuration has changed since some of it was read.
    const again = made.filter(one => !isWhole(one)).map(one => ({ ...one, wanted: one.expected.all }))
    if (again.length > 0) this.#readAhead(again, await this.#link.batch(statementsOf(again)), again)
  }

  /** Keeps the reads of some members by the replies to all. */
  #readAhead(some: readonly Ahead[], replies: readonly BatchReply[], all: readonly Ahead[]): void {
    const asked = all.filter(({ wanted }) => wanted.at.length > 0)
    for (const one of some) {
      const { member, known, expected, wanted } = one
      this.#keep(known, expected.readsOf(textOf(replies[asked.indexOf(one)]), member.input, wanted))
    }
  }

  /** Runs a member. It has failed alone when nothing of it was sent. @throws BrokenTurn, FactsChanged, StateError */
  async run(member: GroupMember): Promise<MemberOutcome> {
    const prepared = this.#prepared.get(member)
    if (!prepared) throw new Error(`${member.name} is of another turn`)
    await this.#makeReady(member, prepared)
    const { known } = prepared
    let first = this.#unsent.length
    const writes: string[] = []
    let [missed, sent] = [0, false]
    // Whoever reads or writes rows that are counted here finds them in the database.
    const tell = (): void => {
      const own = this.#tally.counts || this.#unsent.length > first
      const counted = this.#tally.writes()
      for (const one of counted) this.#write(one, prepared)
      if (counted.length === 0) return
      if (own) sent = true
      else first = this.#unsent.length
    }
    const write = (one: Write): void => {
      if (namesTallied(one.sql)) tell()
      else writes.push(one.sql)
      this.#write(one, prepared)
    }
    const find = (read: Read, tallied: boolean): readonly Row[] | undefined => {
      if (!tallied && namesTallied(read.sql)) tell()
      return this.#drawn.next(read) ?? known.find(read) ?? this.#found(read)
    }
    try {
      const run = new ProcedureRun(member.name, member.input, {
        now_ms: this.#now_ms + Math.floor(performance.now() - this.#begun_at),
        at_hand: { known: find, write, tally: this.#tally },
      })
      for (;;) {
        const { asked, value } = run.attempt()
        if (!asked) {
          this.#tally.keep()
          if (missed > 0) this.#expected.learn(member.name, member.input, { reads: run.reads, writes })
          return { value }
        }
        missed++
        if (asked.counts && namesTallied(asked.sql)) tell()
        sent ||= this.#unsent.length > first
        first = 0
        const { rows, changes } = await this.#ask(asked, prepared)
        run.answer(asked, rows, changes)
      }
    } catch (error) {
      // The statement that failed may be an earlier member's.
      if (error instanceof StateError || error instanceof BrokenTurn) throw error
      if (sent) throw new BrokenTurn(member, error)
      this.#unsent.length = first
      this.#tally.forget()
      return { error }
    }
  }

  /** Sends what is left and commits. @throws BrokenTurn, StateError */
  async commit(): Promise<void> {
    this.#unsent.push(...this.#tally.writes())
    await this.#send({ sql: COMMIT, values: [] })
  }

  /** Has a write sent later, and forgets the reads that it makes untrue. */
  #write(one: Write, { known, of_call, forgotten }: Prepared): void {
    this.#unsent.push(one)
    const rows_of = ownedBy(one, of_call)
    this.#written.add(one.sql, rows_of)
    this.#reads.wrote(one.sql)
    const own = new Written()
    own.add(one.sql, rows_of)
    forgotten.push(...known.forget(read => own.concerns(read.sql, null)))
  }

  /** Has the expected reads of a member made that were not made ahead, or that earlier members have changed. */
  async #makeReady(member: GroupMember, { known, of_call, ...prepared }: Prepared): Promise<void> {
    // An earlier member may have been the first of its kind.
    const expected = prepared.expected ?? this.#expected.of(member.name, member.input)
    if (!expected) return
    if (!prepared.ahead) {
      // Rows that an earlier member has read, such as the project, are read again only after a member has written them.
      const wanted = expected.wanted(member.input, read => this.#found(read))
      if (wanted.at.length === 0) return
      const reply = await this.#send(expected.statement(member.input, wanted))
      return this.#keep(known, expected.readsOf(textOf(reply), member.input, wanted))
    }
    const stale = known.forget(read => this.#written.concerns(read.sql, ownedBy(read, of_call)))
    if (stale.length > 0) this.#keep(known, await this.#read(stale))
  }

  /** Returns what an earlier member has read, or what an earlier turn has read of the configuration. */
  #found(read: Read): readonly Row[] | undefined {
    return this.#reads.find(read) ?? (this.#written.concerns(read.sql, null) ? undefined : this.#kept.find(read))
  }

  #keep(known: KnownReads, reads: readonly ReadRows[]): void {
    for (const read of reads) {
      if (this.#drawn.keep(read)) continue
      known.add(read)
      this.#reads.add(read)
      if (!this.#written.concerns(read.sql, null)) this.#kept.keep(read)
    }
  }

  async #ask(
    asked: AskedStatement,
    { known, forgotten }: Prepared,
  ): Promise<{ readonly rows: readonly Row[]; readonly changes: number }> {
    if (!asked.counts && !WRITES.test(asked.sql)) {
      const others = forgotten.splice(0).filter(read => read.sql !== asked.sql)
      const [read, ...more] = await this.#read([asked, ...others])
      this.#keep(known, more)
      return { rows: read?.rows ?? [], changes: 0 }
    }
    if (this.#unsent.length > 0) await this.#send(null)
    this.#written.add(asked.sql, null)
    this.#reads.wrote(asked.sql)
    const { rows, changes } = await this.#link.run(withNumbers(asked.sql), asked.values)
    return { rows: rows as readonly Row[], changes }
  }

  /** Makes reads in one statement. */
  async #read(reads: readonly Read[]): Promise<ReadRows[]> {
    const reply = await this.#send(together(reads))
    const rows = rowsOfJson(textOf(reply)) as (readonly Row[])[]
    return reads.map(({ sql, values }, at) => ({ sql, values, rows: rows[at] ?? [] }))
  }

  /** Sends the writes that wait, and a statement after them. @throws BrokenTurn, StateError */
  async #send(last: BatchStatement | null): Promise<BatchReply | undefined> {
    const sent = this.#unsent.splice(0)
    const writes = sent.map(({ sql, values, facts, least }) =>
      facts === null ? { sql: withNumbers(sql), values } : { sql: orFails(sql), values: [...values, least] },
    )
    try {
      const replies = await this.#link.batch(last ? [...writes, last] : writes)
      return replies.at(-1)
    } catch (error) {
      if (!(error instanceof StateError) || error.code !== TOO_FEW_CHANGED) throw error
      const facts = sent.flatMap(one => one.facts ?? []).join(' or ')
      throw new BrokenTurn(null, new FactsChanged(facts))
    }
  }
}

/** SQLSTATE division_by_zero. */
const TOO_FEW_CHANGED = '22012'

/**
 * Returns a write that fails on the server when it changes fewer rows than its last value says. The server then skips
 * the statements after it in the same message. One of them may be the commit, which cannot be undone.
 */
const orFails = (sql: string): string =>
  withNumbers(`with changed as (${sql} returning 1) select 1 / (count(*) >= ?)::int from changed`)

/** A member whose expected reads are made with the beginning of the turn. */
interface Ahead {
  readonly member: GroupMember
  readonly known: KnownReads
  readonly expected: Expected
  readonly wanted: Wanted
}

const isWhole = ({ expected, wanted }: Ahead): boolean => wanted.at.length === expected.reads.length

const statementsOf = (members: readonly Ahead[]): BatchStatement[] =>
  members
    .filter(({ wanted }) => wanted.at.length > 0)
    .map(({ expected, member, wanted }) => expected.statement(member.input, wanted))

/** The call whose rows a statement names; null: it may be about rows of others. */
const ownedBy = ({ values }: Read, of_call: string | null): string | null =>
  of_call !== null && values.includes(of_call) ? of_call : null

const textOf = (reply: BatchReply | undefined): string => String(reply?.texts[0] ?? '[]')

function together(reads: readonly Read[]): BatchStatement {
  let count = 0
  const parts = reads.map(({ sql, values }) => {
    const read = withNumbersAfter(withNumbers(sql), count)
    count += values.length
    return `(select coalesce(json_agg(r), '[]'::json) from (${read}) r)`
  })
  return { sql: `select json_build_array(${parts.join(', ')})`, values: reads.flatMap(({ values }) => values) }
}
