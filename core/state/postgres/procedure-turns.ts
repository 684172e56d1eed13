import { failure, StateError } from '../port.ts'
import type { ProcedureName } from '../procedures/table.ts'
import { ExpectedReads } from './expected-reads.ts'
import { BrokenTurn, type GroupMember, GroupTurn, type MemberOutcome } from './group-turn.ts'
import { KeptReads } from './kept-reads.ts'
import type { Pool } from './pool.ts'
import { inOwnTurn, leftNothing, MOST_LOST_TURNS, rollBack } from './turns.ts'

/** Procedures that one turn runs at most: the other processes wait for their turns. */
const MOST_AT_ONCE = 32

interface Waiting extends GroupMember {
  /** The procedure waits for its turn, until its deadline. */
  wait(): void
  /** The procedure begins: its deadline is over. */
  begin(): void
  /** Turns that were lost with their connection, and left nothing. */
  lost_turns: number
  resolve(value: unknown): void
  reject(error: unknown): void
}

/**
 * Runs the procedures of this process that are not part of a transaction. Those that wait while another writer has its
 * turn share the next one, and its commit; none is answered before it. When one of them fails so that the turn is
 * undone, each runs again in a turn of its own. When the turn is lost with its connection before its commit was sent,
 * such as that of a process that stood still, they share another one.
 */
export class ProcedureTurns {
  readonly #pool: Pool
  /** How long they wait for a connection and for their turn. */
  readonly #busy_timeout_ms: number
  readonly #expected = new ExpectedReads()
  readonly #kept = new KeptReads()
  readonly #waiting: Waiting[] = []
  #running = false

  constructor(pool: Pool, busy_timeout_ms: number) {
    this.#pool = pool
    this.#busy_timeout_ms = busy_timeout_ms
  }

  /** Runs a procedure. Fails as busy when it has not begun within `within_ms`. @throws StateError */
  call(name: ProcedureName, input: unknown, within_ms: number): Promise<unknown> {
    return new Promise((resolve, reject) => {
      let late: NodeJS.Timeout | undefined
      const one: Waiting = {
        name,
        input,
        resolve,
        reject,
        lost_turns: 0,
        wait: () => {
          late = setTimeout(() => {
            this.#waiting.splice(this.#waiting.indexOf(one), 1)
            reject(new StateError(`${name} could not begin in time`, { code: 'NO_TURN', failure: 'busy' }))
          }, within_ms)
        },
        begin: () => clearTimeout(late),
      }
      one.wait()
      this.#waiting.push(one)
      if (!this.#running) void this.#runAll()
    })
  }

  async #runAll(): Promise<void> {
    this.#running = true
    // Those that are asked for in this turn of the event loop begin together.
    await null
    while (this.#waiting.length > 0) {
      const group = await this.#turn(null)
      for (const one of group) await this.#turn(one)
    }
    this.#running = false
  }

  /** Runs one procedure, or those that wait. Returns those that have to run again, each by itself. */
  async #turn(alone: Waiting | null): Promise<readonly Waiting[]> {
    const begun: Waiting[] = alone ? [alone] : []
    let [lost, commit_sent] = [true, false]
    try {
      await inOwnTurn(this.#pool, this.#busy_timeout_ms, async (link, within_ms) => {
        const turn = new GroupTurn(link, this.#expected, this.#kept)
        const group = alone ? [alone] : this.#waiting.slice(0, MOST_AT_ONCE)
        try {
          await turn.begin(group, within_ms)
          if (!alone) begun.push(...this.#begin(group))
          const settle: (() => void)[] = []
          for (const one of begun) settle.push(settling(one, await turn.run(one)))
          commit_sent = !link.broken
          await turn.commit()
          for (const tell of settle) tell()
        } catch (error) {
          await rollBack(link)
          lost = link.broken
          throw error
        }
      })
      return []
    } catch (error) {
      if (begun.length === 0) return this.#notBegun(error)
      return lost && leftNothing(error, commit_sent) ? this.#waitAgain(begun, error) : undone(begun, error, lost)
    }
  }

  /** Lets those that have lost a turn wait for another one, before all others, but not for ever. */
  #waitAgain(begun: readonly Waiting[], error: unknown): readonly Waiting[] {
    for (const one of begun) one.lost_turns++
    const again = begun.filter(({ lost_turns }) => lost_turns < MOST_LOST_TURNS)
    for (const one of begun)
      if (again.includes(one)) one.wait()
      else one.reject(error)
    this.#waiting.unshift(...again)
    return []
  }

  /** Returns those of a group whose deadline is not over: they begin. */
  #begin(group: readonly Waiting[]): readonly Waiting[] {
    const begun = group.filter(one => this.#waiting.includes(one))
    for (const one of begun) {
      this.#waiting.splice(this.#waiting.indexOf(one), 1)
      one.begin()
    }
    return begun
  }

  /** There was no turn. Those whose deadline is not over wait for the next one, unless the store is away. */
  #notBegun(error: unknown): readonly Waiting[] {
    if (failure(error) === 'busy') return []
    for (const one of this.#begin([...this.#waiting])) one.reject(error)
    return []
  }
}

const settling =
  (one: Waiting, outcome: MemberOutcome): (() => void) =>
  () =>
    'error' in outcome ? one.reject(outcome.error) : one.resolve(outcome.value)

/** A turn is undone. Returns those that run again: not the one at fault, and none when the commit may have happened. */
function undone(begun: readonly Waiting[], error: unknown, lost: boolean): readonly Waiting[] {
  const fault = error instanceof BrokenTurn ? error : null
  const alone = begun.length === 1
  const again = lost ? [] : begun.filter(one => (fault?.member ? one !== fault.member : !alone))
  for (const one of begun) if (!again.includes(one)) one.reject(fault ? fault.cause : error)
  return again
}
