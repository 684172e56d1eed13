import { UserAgent } from '../../signaling/edge/useragent/user-agent.ts'
import { addTrunk, ask, isAnswered } from '../set-up.ts'
import { type Made, startUp } from '../up.ts'

/** The pause between retries. The edge stops answering a stranger that retries too often. */
const PAUSE_MS = 20

interface InForce {
  /**
   * Milliseconds from the answer to a write (a trunk's new source) to the 200 of the first admitted INVITE from that
   * source, including the call's setup. One figure per round.
   */
  readonly in_force_ms: readonly number[]
  /** The setup time alone: the same call again, from the source that is already in force. */
  readonly setup_ms: readonly number[]
}

/** Measures how soon a write takes effect in a platform with all its processes. */
export async function measureInForce(rounds: number): Promise<InForce> {
  const { made, sip_port, stop } = await startUp('in-force', { STROWGER_LOG: 'error' })
  try {
    return await measured(made, sip_port, rounds)
  } finally {
    await stop()
  }
}

async function measured(made: Made, sip_port: number, rounds: number): Promise<InForce> {
  const created = await addTrunk(made, '127.0.0.61/32')
  const path = `/trunks/${created.trunk.id}`
  const in_force_ms: number[] = []
  const setup_ms: number[] = []
  for (let round = 1; round <= rounds; round += 1) {
    const host = `127.0.1.${round}`
    const agent = await UserAgent.open({ listeners: [{ protocol: 'udp', host, port: 0 }] })
    const { revision } = await ask(made, path)
    const headers = { 'if-match': `"${revision}"`, 'idempotency-key': `source-${round}` }
    await ask(made, `${path}/ip-credentials`, { cidr: `${host}/32` }, headers)
    const written_at = performance.now()
    const from = { host, sip_port, caller: made.numbers[0] ?? '' }
    while (!(await isAnswered(agent, from))) await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
    const first_at = performance.now()
    if (!(await isAnswered(agent, from))) throw new Error(`${host} was admitted, and then was not`)
    in_force_ms.push(first_at - written_at)
    setup_ms.push(performance.now() - first_at)
    agent.close()
  }
  return { in_force_ms, setup_ms }
}

export const medianOf = (figures: readonly number[]): number =>
  [...figures].sort((a, b) => a - b)[Math.floor(figures.length / 2)] ?? Number.NaN
