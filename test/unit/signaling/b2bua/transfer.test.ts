import { setImmediate as turn } from 'node:timers/promises'
import pino from 'pino'
import type { Call, Party } from '../../../../signaling/b2bua/call.ts'
import type { Leg } from '../../../../signaling/b2bua/leg.ts'
import { Pairing } from '../../../../signaling/b2bua/pairing.ts'
import { passNotify } from '../../../../signaling/b2bua/refer-passing.ts'
import { type Replacement, replaceLeg } from '../../../../signaling/b2bua/replacement.ts'
import { transferAsked } from '../../../../signaling/b2bua/transfer.ts'
import type { InboundRequest } from '../../../../signaling/drachtio/types.ts'
import t from '../../../support/harness/index.ts'

// A REFER that comes before the call is answered at both ends. The transfer is real; the call is a fake.

/** A call whose called party's answer is known, and whose caller's is not. */
interface Staged {
  readonly accepted: boolean
  readonly transfers?: 'consume' | 'pass' | 'refuse'
  /** The trunk of the caller; null: it came by a carrier. */
  readonly caller_trunk?: string | null
  /** What the caller answers to a REFER. */
  readonly says?: number
  readonly refer_to?: string
  /** Other calls of the node. */
  readonly others?: readonly object[]
}

const joined: string[] = []
const session = {
  hub: { request: async (what: string, legs: object) => void joined.push(`${what} ${Object.values(legs)}`) },
}

/** Trunks of a customer, and one of a rival. */
const TRUNKS = [
  ['trk_a', 'prj_1', 'consume'],
  ['trk_rival', 'prj_2', 'consume'],
  ['trk_closed', 'prj_1', 'refuse'],
] as const

/** Gives a fake call a real pairing. */
const paired = <T extends object>(call: T, legs: () => readonly object[] = () => []) =>
  Object.assign(call, { pairing: new Pairing(call as unknown as Call, legs as () => Leg[]) })

function stage({ accepted, transfers = 'consume', caller_trunk = 'trk_a', says = 202, ...more }: Staged) {
  const sent: string[] = []
  const dialogOf = (whose: string, status: number) => ({
    request: async (method: string, { headers, body }: { headers: Record<string, string>; body?: string }) => {
      sent.push(`${whose} ${method} ${headers['Refer-To'] ?? body?.trim()}`)
      return { status }
    },
  })
  const answers: number[] = []
  const placed: string[] = []
  let settle: () => void = () => undefined
  const settled = new Promise<void>(resolve => {
    settle = resolve
  })
  const leg = {
    id: 'b',
    trunk_id: 'trk_b',
    accepted,
    answered: false,
    ended: false,
    foreign: false,
    sipDialog: dialogOf('b', 200),
  }
  const caller = {
    id: 'a',
    trunk_id: caller_trunk,
    answered: false,
    ended: false,
    session,
    sipDialog: dialogOf('a', says),
  }
  const facts = {
    answered: false,
    ended: false,
    settled,
    log: pino({ level: 'silent' }),
    event: () => undefined,
    onEnd: () => undefined,
    depart: () => undefined,
    ctx: {
      draining: () => false,
      calls: { all: () => more.others ?? [] },
      snapshot: () => ({
        trunks: new Map<string, object>([
          ['trk_b', { project_id: 'prj_1', subaccount_id: null, transfers }],
          ...TRUNKS.map(([id, project_id, own]) => [id, { project_id, subaccount_id: null, transfers: own }] as const),
        ]),
      }),
      transfers: {
        place: async ({ target }: { target: { number: string } }) => {
          placed.push(target.number)
          return { kind: 'placed' }
        },
      },
    },
  }
  const call = paired(facts, () => [leg, caller])
  const refer = {
    header: (name: string) => (name === 'refer-to' ? (more.refer_to ?? '<sip:+2342010002002@192.0.2.1>') : null),
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
  const notified = (status: string | null) =>
    passNotify(
      { call, leg: caller } as unknown as Party,
      {
        header: (name: string) =>
          ({ event: 'refer', 'subscription-state': status === null ? 'terminated' : null })[name] ?? null,
        content: () => ({ parts: status === null ? [] : [{ content: `SIP/2.0 ${status}` }] }),
        respond: (code: number) => void answers.push(code),
      } as unknown as InboundRequest,
    )
  return { asked, answered, over, answers, placed, sent, notified }
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

t.test('a Refer-To that names a dialog which we still answer waits until that call is answered', async t => {
  const own = { id: 'own', trunk_id: 'trk_b', sip_call_id: 'consult', answered: false, ended: false }
  const far = { id: 'far', trunk_id: 'trk_a', sip_call_id: 'other', answered: true, ended: false, session }
  const named = { call_id: 'consult', local_tag: 'ours', remote_tag: 'theirs' }
  let settle: () => void = () => undefined
  const settled = new Promise<void>(resolve => {
    settle = resolve
  })
  const facts = { settled, settling: [own, far] as object[], parties: [] as object[], depart: () => undefined }
  const consultation = paired(facts, () => [own, far])
  const { asked, answered, answers, sent } = stage({
    accepted: true,
    refer_to: '<sip:+2342010002002@192.0.2.1?Replaces=consult%3Bto-tag%3Dours%3Bfrom-tag%3Dtheirs>',
    others: [consultation],
  })
  answered()
  asked()
  await turn()
  t.same(answers, [202])
  t.same(sent, ['b NOTIFY SIP/2.0 100 Trying'], 'it has not failed, though no answered call has this dialog')
  t.same(joined, [])
  Object.assign(own, { answered: true, sipDialog: named })
  Object.assign(consultation, { settling: [], parties: [{ call: consultation, leg: own }] })
  settle()
  await turn()
  t.same(joined, ['bridge a,far'], 'the two who remain hear each other')
  t.match(sent, [/100/, 'b NOTIFY SIP/2.0 200 OK'])
})

t.test('a telephone that only rings is refused at once', t => {
  const { asked, answers, placed } = stage({ accepted: false })
  asked()
  t.same(answers, [603])
  t.same(placed, [])
  t.end()
})

t.test('a trunk that refuses transfers gets 603, and nobody is called', async t => {
  const { asked, answered, answers, placed } = stage({ accepted: true, transfers: 'refuse' })
  answered()
  asked()
  await turn()
  t.same(answers, [603])
  t.same(placed, [])
})

t.test('a trunk that passes transfers on: the other side is asked, and how it goes is told to who asked', async t => {
  const { asked, answered, answers, placed, sent, notified } = stage({ accepted: true, transfers: 'pass' })
  answered()
  asked()
  await turn()
  t.same(answers, [202])
  t.same(placed, [], 'the platform calls nobody')
  t.ok(notified('100 Trying') && notified('200 OK'))
  t.same(sent, ['a REFER <sip:+2342010002002@192.0.2.1>', 'b NOTIFY SIP/2.0 100 Trying', 'b NOTIFY SIP/2.0 200 OK'])
  t.notOk(notified('200 OK'), 'a NOTIFY after the last one is of another REFER')
})

t.test('the transferor gets a NOTIFY with 503 when the target ends its subscription without an outcome', async t => {
  const { asked, answered, sent, notified } = stage({ accepted: true, transfers: 'pass' })
  answered()
  asked()
  await turn()
  t.ok(notified('100 Trying') && notified(null))
  t.same(sent.slice(1), ['b NOTIFY SIP/2.0 100 Trying', 'b NOTIFY SIP/2.0 503 Service Unavailable'])
})

t.test('a refusal of the other side is passed back', async t => {
  const { asked, answered, answers, notified } = stage({ accepted: true, transfers: 'pass', says: 603 })
  answered()
  asked()
  await turn()
  t.same(answers, [603])
  t.notOk(notified('200 OK'))
})

for (const [whose, caller_trunk] of [
  ['a carrier', null],
  ['another customer', 'trk_rival'],
  ['a trunk that refuses transfers', 'trk_closed'],
] as const)
  t.test(`no transfer is passed on to ${whose}`, async t => {
    const { asked, answered, answers, placed, sent } = stage({ accepted: true, transfers: 'pass', caller_trunk })
    answered()
    asked()
    await turn()
    t.same(answers, [603])
    t.same([placed, sent], [[], []])
  })

// ------------------------------------------------------------------------------------- INVITE with Replaces, by fakes

/** A leg in a session that joins whatever it is asked to; `bridged` are the joined pairs. */
function legs() {
  const bridged: string[] = []
  const hub = { request: async (_what: string, { a, b }: { a: string; b: string }) => void bridged.push(`${a} ${b}`) }
  const session = { hub }
  const leg = (id: string) => ({ id, ended: false, session, prefer: null })
  return { bridged, leg }
}

/** A call of a newcomer: its end, and its answer, which takes until it is let go. */
function newcomer(leg: object) {
  const ends: unknown[] = []
  const call = paired({ sid: 'new', ended: false, event: () => undefined, end: (f: object) => ends.push(f) })
  let let_go: (failed?: Error) => void = () => undefined
  const held = new Promise<void>((resolve, reject) => {
    let_go = failed => (failed ? reject(failed) : resolve())
  })
  let asked = 0
  const answer = (): Promise<void> => {
    asked++
    return held
  }
  return { party: { call, leg } as unknown as Party, answer, let_go, ends, answers: () => asked }
}

/** A call whose target rings, and which is picked up. */
function ringingCall(leg: object) {
  const rings = { earlyDialogs: [{}] }
  const picked: string[] = []
  const call = paired({
    ended: false,
    ringingLeg: rings as unknown,
    event: () => undefined,
    depart: () => undefined,
    pickedUp: async ({ id }: { id: string }) => void picked.push(id),
  })
  const how = { kind: 'early', stays: { call, leg }, rings } as unknown as Replacement
  return { call, how, picked, rings }
}

t.test('of two pickups of one ringing call the first has it, and the second gets 481 unanswered', async t => {
  const { leg, bridged } = legs()
  const { call, how, picked } = ringingCall(leg('caller'))
  const [one, two] = [newcomer(leg('one')), newcomer(leg('two'))]
  const first = replaceLeg(one.party, one.answer, how)
  await replaceLeg(two.party, two.answer, how)
  t.match(two.ends, [{ cause: 'refused', sip_code: 481 }])
  t.equal(two.answers(), 0)
  one.let_go()
  await first
  t.same([picked, bridged], [['one'], ['caller one']])
  t.equal(call.pairing.transfer, null, 'the call may be transferred again')
})

t.test('a target that answers while the pickup is answered keeps the call', async t => {
  const { leg, bridged } = legs()
  const { call, how, picked } = ringingCall(leg('caller'))
  const one = newcomer(leg('one'))
  const work = replaceLeg(one.party, one.answer, how)
  call.ringingLeg = null
  one.let_go()
  await work
  t.same([picked, bridged], [[], []])
  t.match(one.ends, [{ cause: 'called_hung_up' }])

  const late = newcomer(leg('late'))
  await replaceLeg(late.party, late.answer, how)
  t.match(late.ends, [{ cause: 'refused', sip_code: 481 }], 'admission took so long that the target has answered')
  t.equal(late.answers(), 0)
})

t.test('a leg that ended or is being transferred while admission judged is replaced no more', async t => {
  const { leg } = legs()
  for (const what of ['the leg has ended', 'its call is being transferred', 'the other party has ended']) {
    const [stays, replaced] = [leg('stays'), leg('replaced')]
    const calls = { stays: ringingCall(stays).call, replaced: ringingCall(replaced).call }
    if (what === 'the leg has ended') replaced.ended = true
    else if (what === 'the other party has ended') stays.ended = true
    else calls.replaced.pairing.transfer = { gone: () => false }
    const how = {
      kind: 'confirmed',
      stays: { call: calls.stays, leg: stays },
      replaced: { call: calls.replaced, leg: replaced },
    } as unknown as Replacement
    const one = newcomer(leg('one'))
    await replaceLeg(one.party, one.answer, how)
    t.match(one.ends, [{ cause: 'refused', sip_code: 481 }], what)
    t.equal(one.answers(), 0, what)
  }
})

t.test('calls are free again when the new caller could not be answered', async t => {
  const { leg } = legs()
  const [stays, replaced] = [ringingCall(leg('stays')), ringingCall(leg('replaced'))]
  const how = {
    kind: 'confirmed',
    stays: { call: stays.call, leg: leg('stays') },
    replaced: { call: replaced.call, leg: leg('replaced') },
  } as unknown as Replacement
  const one = newcomer(leg('one'))
  const work = replaceLeg(one.party, one.answer, how)
  t.ok(stays.call.pairing.transfer && replaced.call.pairing.transfer, 'nobody else may have them meanwhile')
  one.let_go(new Error('cancelled'))
  await t.rejects(work, /cancelled/)
  t.same([stays.call.pairing.transfer, replaced.call.pairing.transfer], [null, null])
})
