import { machineOf } from '../../core/runtime/machine.ts'
import {
  type CertificateKey,
  notShowing,
  proofsOfOthers,
  putProof,
  putShower,
  removeProof,
} from '../../core/state/nodes/acme.ts'
import type { Services } from '../http/services.ts'
import type { Challenge, ChallengeType, Present, Withdraw } from './client.ts'

/** How long an order waits for other machines to show its proof. One that is lost does not show it. */
const SHOWN_WITHIN_MS = 5000
const LOOK_MS = 100

interface How {
  readonly key: CertificateKey
  readonly type: ChallengeType
  /** Shows a proof at the port of this machine. */
  readonly present: Present
}

/**
 * The proofs of machines with the same names. An authority asks any machine to which a name leads, and from several
 * places at once, so all of them show the proof of the one that orders.
 */
export class SharedProofs {
  readonly #how: How
  /** What ends each proof of another machine that this one shows, by its token. */
  readonly #shown = new Map<string, Withdraw>()

  constructor(how: How) {
    this.#how = how
  }

  /** Shows the proofs of the others, and no others than those. */
  async follow(services: Services): Promise<void> {
    const { state, clock, log } = services
    const { key, present } = this.#how
    const own = this.#machine(services)
    const wanted = await proofsOfOthers(state.db, key, own, clock.now())
    for (const [token, withdraw] of this.#shown)
      if (!wanted.some(proof => proof.token === token)) {
        this.#shown.delete(token)
        await withdraw()
      }
    for (const { token, name, key_authorization } of wanted) {
      if (this.#shown.has(token)) continue
      try {
        this.#shown.set(token, await present({ token, name, key_authorization }))
      } catch (err) {
        log.warn({ err, name }, 'the proof of another machine cannot be shown')
      }
    }
    await putShower(state, key, own, [...this.#shown.keys()])
  }

  /** Shows a proof of this machine's order here and on the others. */
  async present(services: Services, challenge: Challenge): Promise<Withdraw> {
    const { state, bus } = services
    const { key, type, present } = this.#how
    const { machine_id } = this.#machine(services)
    const withdrawHere = await present(challenge)
    const withdraw = async (): Promise<void> => {
      await withdrawHere()
      await removeProof(state.db, challenge.token)
      bus.ring('certificates')
    }
    try {
      await putProof(state, { ...key, ...challenge, type, machine_id })
      bus.ring('certificates')
      await this.#shownByAll(services, challenge)
    } catch (error) {
      await withdraw()
      throw error
    }
    return withdraw
  }

  async stop(): Promise<void> {
    const all = [...this.#shown.values()]
    this.#shown.clear()
    for (const withdraw of all) await withdraw()
  }

  async #shownByAll(services: Services, { token, name }: Challenge): Promise<void> {
    const { state, clock, log } = services
    const own = this.#machine(services)
    const until_ms = clock.monotonic_ms() + SHOWN_WITHIN_MS
    for (;;) {
      const missing = await notShowing(state.db, this.#how.key, own, { token, now_ms: clock.now() })
      if (missing.length === 0) return
      if (clock.monotonic_ms() > until_ms) {
        log.warn({ name, machines: missing }, 'machines with this name do not show its proof')
        return
      }
      await new Promise<void>(resolve => void clock.after(LOOK_MS, resolve))
    }
  }

  #machine({ settings }: Services) {
    return { machine_id: machineOf(settings.data_dir).machine_id, type: this.#how.type }
  }
}
