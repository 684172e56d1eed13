import { setImmediate as turn } from 'node:timers/promises'
import type { Event, Refer } from '../../../../markup/interpreter/types.ts'
import { Referrals } from '../../../../signaling/scripts/referrals.ts'
import t from '../../../support/harness/index.ts'

// Whom the Refer verb asks to call somebody else.

const command = { kind: 'refer', id: 'r1', uri: 'sip:sales@example.test', headers: [] } as unknown as Refer

/** Runs a Refer on a leg of a trunk with this policy. Returns what the leg was asked and what the verb was told. */
async function refer(transfers: 'consume' | 'pass' | 'refuse') {
  const asked: string[] = []
  const warned: unknown[] = []
  const call = {
    ...{ row_now: { carrier_id: null }, facts: { to: '1' } },
    event: (_kind: string, _number: null, { detail }: { detail: string }) => void warned.push(detail),
  }
  const request = async (method: string) => {
    asked.push(method)
    return { status: 603 }
  }
  const ctx = {
    snapshot: () => ({ trunks: new Map([['trk_1', { transfers }]]) }),
    config: { domain: 'voice.test' },
    children: { refer: async () => null },
  }
  const host = { call, leg: { trunk_id: 'trk_1', sipDialog: { request } } }
  const told = await new Promise<Event>(resolve => {
    const referrals = new Referrals(ctx as never, host as never, resolve)
    referrals.send(command)
  })
  return { asked, warned, told }
}

t.test('the peer of a trunk that refuses transfers is not asked, and the verb ends with 603', async t => {
  t.match(await refer('refuse'), {
    asked: [],
    warned: [/refuses transfers/],
    told: { type: 'refer_ended', id: 'r1', sip_code: 603, notify_code: null },
  })
})

t.test('any other peer is asked, and the verb ends with its answer', async t => {
  for (const transfers of ['consume', 'pass'] as const)
    t.match(await refer(transfers), { asked: ['REFER'], warned: [], told: { type: 'refer_ended', sip_code: 603 } })
})

t.test('the verb learns how far the transfer is, each state once', async t => {
  const told: Event[] = []
  const ctx = {
    snapshot: () => ({ trunks: new Map() }),
    config: { domain: 'voice.test' },
    children: { refer: async () => null },
  }
  const clock = { after: () => ({ cancel: () => undefined }) }
  const call = { row_now: { carrier_id: null }, facts: { to: '1' }, clock }
  let answer: (answer: { status: number }) => void = () => undefined
  const request = () =>
    new Promise(resolve => {
      answer = resolve
    })
  const host = { call, leg: { trunk_id: null, sipDialog: { request } } }
  const referrals = new Referrals(ctx as never, host as never, event => told.push(event))
  const notified = (status: number, state: string): void =>
    referrals.notified({
      respond: () => undefined,
      header: (name: string) => ({ event: 'refer', 'subscription-state': state })[name] ?? null,
      content: () => ({ parts: [{ content: `SIP/2.0 ${status} X\r\n` }] }),
    } as never)
  referrals.send(command)
  await turn()
  notified(100, 'active')
  answer({ status: 202 })
  await turn()
  for (const status of [100, 180, 180]) notified(status, 'active')
  notified(200, 'terminated')
  t.match(told, [
    { type: 'refer_notified', id: 'r1', notify_code: 100 },
    { type: 'refer_accepted', id: 'r1', sip_code: 202 },
    { type: 'refer_notified', id: 'r1', notify_code: 180 },
    { type: 'refer_ended', id: 'r1', sip_code: 202, notify_code: 200 },
  ])
  t.equal(told.length, 4)
})
