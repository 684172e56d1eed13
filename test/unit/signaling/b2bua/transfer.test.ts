import { setImmediate as turn } from 'node:timers/promises'
import pino from 'pino'
import type { Party } from '../../../../signaling/b2bua/call.ts'
import { transferAsked } from '../../../../signaling/b2bua/transfer.ts'
import type { InboundRequest } from '../../../../signaling/drachtio/types.ts'
import t from '../../../support/harness/index.ts'

// A REFER that comes before the call is answered at both ends. The transfer is real; the call is a fake.

/** A call whose called party's answer is known, and whose caller's is not. */
function stage({ accepted }: { accepted: boolean }) {
  const answers: number[] = []
  const placed: string[] = []
  let settle: () => void = () => undefined
  const settled = new Promise<void>(resolve => {
    settle = resolve
  })
  const leg = { id: 'b', trunk_id: 'trk_b', accepted, answered: false, ended: false, foreign: false, sipDialog: null }
  const caller = { id: 'a', trunk_id: 'trk_a', answered: false, ended: false, foreign: false }
  const call = {
    answered: false,
    ended: false,
    transfer: null,
    settled,
    log: pino({ level: 'silent' }),
    event: () => undefined,
    onEnd: () => undefined,
    peerOf: () => (caller.answered ? { call, leg: caller } : null),
    ctx: {
      draining: () => false,
      transfers: {
        place: async ({ target }: { target: { number: string } }) => {
          placed.push(target.number)
          return { kind: 'placed' }
        },
      },
    },
  }
  const refer = {
    header: (name: string) => (name === 'refer-to' ? '<sip:+2342010002002@192.0.2.1>' : null),
    respond: (status: number) => void answers.push(status),
  } as unknown as InboundRequest
  const asked = (): void => transferAsked({ call, leg } as unknown as Party, refer)
  const answered = (): void => {
    for (const one of [call, leg, caller]) one.answered = true
    settle()
  }
  const over = (): void => {
    call.ended = true
    leg.ended = true
    settle()
  }
  return { asked, answered, over, answers, placed }
}

t.test('a REFER that follows the 200 at once waits until the caller is answered', async t => {
  const { asked, answered, answers, placed } = stage({ accepted: true })
  asked()
  await turn()
  t.same(answers, [], 'the caller is still being answered')
  answered()
  await turn()
  t.same(answers, [202])
  t.same(placed, ['+2342010002002'])
})

t.test('when the caller hangs up meanwhile, the REFER gets 481 and nobody is called', async t => {
  const { asked, over, answers, placed } = stage({ accepted: true })
  asked()
  over()
  await turn()
  t.same(answers, [481])
  t.same(placed, [])
})

t.test('a telephone that only rings is refused at once', t => {
  const { asked, answers, placed } = stage({ accepted: false })
  asked()
  t.same(answers, [603])
  t.same(placed, [])
  t.end()
})
