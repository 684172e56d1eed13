import { availableMinor } from '../../../domain/billing/available.ts'
import { FactsChanged, numberOf, numberOrNull, type Row, textOf } from '../query.ts'
import type { CountedCharge, Taken, Tally } from './tally.ts'
import {
  based,
  clamped,
  type DaySpend,
  keyOf,
  type Layer,
  type LevelUse,
  layer,
  NO_ACCOUNT,
  NO_DAY,
  NO_USE,
  numberNow,
  type Payer,
  plus,
  takesOf,
} from './tally-rows.ts'
import { tallied } from './tally-writes.ts'
import { secondTakes } from './window.ts'

/**
 * What the procedures of a turn have counted: of the rows of levels, days and accounts. Other writers wait for the
 * turn, so rows stay as they were read. What a procedure counts is kept when it has ended well.
 */
export class TurnTally implements Omit<Tally, 'read'> {
  #kept = layer()
  #counted = layer()

  /** Reports whether the procedure that runs has counted. */
  get counts(): boolean {
    return this.#counted.changed
  }

  /** The procedure has ended: what it counted is kept. */
  keep(): void {
    for (const [key, use] of this.#counted.uses) this.#kept.uses.set(key, use)
    for (const [key, day] of this.#counted.days) this.#kept.days.set(key, day)
    for (const [key, account] of this.#counted.accounts) this.#kept.accounts.set(key, account)
    this.#kept.ledger.push(...this.#counted.ledger)
    this.#kept.changed ||= this.#counted.changed
    this.#counted = layer()
  }

  /** The procedure has failed. */
  forget(): void {
    this.#counted = layer()
  }

  /** Returns the writes for all that was counted, and forgets the rows: others are about to be read or written. */
  writes(): ReturnType<typeof tallied> {
    this.keep()
    const writes = this.#kept.changed ? tallied(this.#kept) : []
    this.#kept = layer()
    return writes
  }

  uses(rows: readonly Row[], day: string): readonly Row[] {
    return rows.map(row => {
      const [level, subject_id] = [textOf(row, 'level'), textOf(row, 'subject_id')]
      const [use_key, day_key] = [keyOf(subject_id, level), keyOf(subject_id, level, day)]
      const use = this.#use(use_key)
      const known_use = { ...use, live: based(use.live, numberOf(row, 'live')), was_takes: textOf(row, 'takes') }
      const spent = based(this.#day(day_key).spent, numberOrNull(row, 'spent_minor'))
      this.#counted.uses.set(use_key, known_use)
      this.#counted.days.set(day_key, { spent })
      const spent_minor = spent.was === null && spent.add === 0 ? null : numberNow(spent)
      return { ...row, live: numberNow(known_use.live), takes: takesOf(known_use), spent_minor }
    })
  }

  payer(row: Row): Row {
    const id = textOf(row, 'id')
    const { balance, held } = this.#account(id)
    const account = {
      balance: based(balance, numberOf(row, 'balance_minor')),
      held: based(held, numberOf(row, 'held_minor')),
      prepaid: numberOf(row, 'prepaid') !== 0,
      credit: numberOf(row, 'credit_minor'),
    }
    this.#counted.accounts.set(id, account)
    return { ...row, balance_minor: numberNow(account.balance), held_minor: numberNow(account.held) }
  }

  take({ usage: { levels, counted }, second, money }: Taken): boolean {
    const uses = levels.map(({ id, level }) => this.#use(keyOf(id, level)))
    if (uses.some(({ live }) => live.was === undefined) || levels.some(({ id }) => !counted.has(id))) return false
    const account = money?.account == null ? null : this.#account(money.account)
    if (account && account.held.was === undefined) return false
    const days = money?.caps.map(([level, id]) => this.#day(keyOf(id, level, money.day))) ?? []
    if (days.some(({ spent }) => spent.was === undefined)) return false
    for (const [at, { level, id, concurrency, cps }] of levels.entries()) {
      const use = uses[at] as LevelUse
      const takes = secondTakes(second, takesOf(use), cps)
      if (takes === null || numberNow(use.live) >= (concurrency.limit ?? Infinity))
        throw new FactsChanged(`slots of ${level} ${id}`)
      this.#set('uses', keyOf(id, level), { ...use, live: plus(use.live, 1), takes })
    }
    if (!money) return true
    for (const [at, [level, id, daily]] of money.caps.entries()) {
      const { spent } = days[at] as DaySpend
      const is_row = spent.was !== null || spent.add !== 0
      if (is_row && numberNow(spent) + money.minor > (daily ?? Infinity)) throw new FactsChanged('a daily cap')
      this.#set('days', keyOf(id, level, money.day), { spent: plus(spent, money.minor) })
    }
    if (account && money.account !== null) {
      const available = availableMinor({
        prepaid: account.prepaid ? 1 : 0,
        balance_minor: numberNow(account.balance),
        credit_minor: account.credit,
        held_minor: numberNow(account.held),
      })
      if (available !== null && available < money.minor) throw new FactsChanged(`the balance of ${money.account}`)
      this.#set('accounts', money.account, { ...account, held: plus(account.held, money.minor) })
    }
    return true
  }

  countOff(held: readonly (readonly [id: string, level: string])[]): void {
    for (const [id, level] of held) {
      const use = this.#use(keyOf(id, level))
      this.#set('uses', keyOf(id, level), { ...use, live: clamped(use.live, -1) })
    }
  }

  addToDay(caps: Parameters<Tally['addToDay']>[0], day: string, minor: number): void {
    for (const [level, id] of caps) {
      const { spent } = this.#day(keyOf(id, level, day))
      this.#set('days', keyOf(id, level, day), { spent: clamped(spent, minor) })
    }
  }

  charge({ account: id, held_minor, charge_minor, ...of }: CountedCharge): void {
    const account = this.#account(id)
    const balance = plus(account.balance, -charge_minor)
    this.#set('accounts', id, { ...account, balance, held: clamped(account.held, -held_minor) })
    if (charge_minor !== 0) this.#counted.ledger.push({ ...of, account: id, charge_minor, added: balance.add })
  }

  #set<Kind extends 'uses' | 'days' | 'accounts'>(
    kind: Kind,
    key: string,
    row: Layer[Kind] extends Map<string, infer R> ? R : never,
  ): void {
    const rows = this.#counted[kind] as Map<string, typeof row>
    rows.set(key, row)
    this.#counted.changed = true
  }

  #use = (key: string): LevelUse => this.#counted.uses.get(key) ?? this.#kept.uses.get(key) ?? NO_USE
  #day = (key: string): DaySpend => this.#counted.days.get(key) ?? this.#kept.days.get(key) ?? NO_DAY
  #account = (id: string): Payer => this.#counted.accounts.get(id) ?? this.#kept.accounts.get(id) ?? NO_ACCOUNT
}
