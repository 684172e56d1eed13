import type { Test } from 'tap'
import { openPhone } from '../../test/support/phone.ts'
import { world } from '../../test/support/world.ts'

const CALLED = '+2348030000001'

/**
 * Milliseconds from the answer to a write (a trunk's new source) to the 200 of the first INVITE from there that is
 * admitted, the setting-up of that call included, in a platform with all its processes; one figure for each round.
 */
export async function measureInForce(rounds: number): Promise<readonly number[]> {
  const endings: (() => unknown)[] = []
  // What the tests' helpers ask of a test: to be told when it is over.
  const run = { teardown: (end: () => unknown) => endings.unshift(end), passing: () => true, comment: () => {} }
  const t = run as unknown as Test
  try {
    const w = await world(t, { STROWGER_LOG: 'error' })
    const trunk_id = await w.addTrunk('127.0.0.61')
    const figures: number[] = []
    for (let round = 1; round <= rounds; round += 1) {
      const local_ip = `127.0.1.${round}`
      const phone = await openPhone(t, { ...w.sip, local_ip })
      const { body } = await w.manage('GET', `/trunks/${trunk_id}`)
      const headers = { 'if-match': `"${body.revision}"`, 'idempotency-key': `source-${round}` }
      const source = { cidr: `${local_ip}/32` }
      const { status } = await w.manage('POST', `/trunks/${trunk_id}/ip-credentials`, source, headers)
      if (status !== 201) throw new Error(`source: ${status}`)
      const written_at = performance.now()
      for (let admitted = false; !admitted; ) {
        const call = phone.anew()
        const answer = await call.invite({ called: CALLED, caller: w.numbers[0] ?? '', cseq: 1 })
        admitted = answer.status === 200
        if (admitted) figures.push(performance.now() - written_at)
        if (admitted) await call.bye(2)
        // A stranger that insists is not answered any more.
        else await new Promise(resolve => setTimeout(resolve, 20))
      }
    }
    return figures
  } finally {
    for (const end of endings) await end()
  }
}

export const medianOf = (figures: readonly number[]): number =>
  [...figures].sort((a, b) => a - b)[Math.floor(figures.length / 2)] ?? Number.NaN
