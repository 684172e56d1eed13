import { bumpConfiguration } from '../../core/state/configuration/bump.ts'
import { tone, wavBytes } from '../support/audio.ts'
import {
  addTrunk,
  answered,
  answers,
  answersUntilCued,
  begin,
  endOf,
  lastCall,
  mediaPort,
  nothingLeft,
  offeredPort,
  routeToTrunk,
  story,
  TARGET,
  targetOf,
  trunkOf,
  untilBye,
  waiting,
} from '../support/b2bua-world.ts'
import t, { type Test } from '../support/harness/index.ts'
import { hearEachOther, openRtpPeer, type RtpPeer } from '../support/rtp-peer.ts'
import { sharedWorld } from '../support/shared-world.ts'
import { answerKeepingTo, inDialog, KEPT_TO } from '../support/sip-steps.ts'
import { awaits, callee, caller, provisionals, receive, signals } from '../support/sipp.ts'
import { type Line, openSoftphone, type Softphone } from '../support/softphone.ts'
import { addTenant } from '../support/tenants.ts'
import { until } from '../support/wait.ts'
import { webServer } from '../support/web.ts'
import type { World } from '../support/world.ts'

// REFER within a call of two trunk legs (user-asks row 6): we execute it, report by NOTIFY, and release the transferor.

/** Nigeria's ring tone (ITU-T E.180 Supplement 2). */
const RINGING_HZ = 425

const connected = [...provisionals, answerKeepingTo, caller.ack]
const ask = (method: string, cseq: number, headers = ''): string =>
  inDialog(method, cseq, { to: KEPT_TO, ...(headers === '' ? {} : { headers }) })
const hangUp = (cseq: number): string[] => [ask('BYE', cseq), receive.response(200)]
const refer = (cseq: number, to: string, headers = ''): string[] => [
  ask('REFER', cseq, `Refer-To: ${to}${headers === '' ? '' : `\n${headers}`}`),
  receive.response(202),
]
const notified = (line: string): string[] => [
  `<recv request="NOTIFY"><action><ereg regexp="SIP/2.0 ${line}" search_in="body" check_it="true" assign_to="seen"/></action></recv>`,
  '<nop><action><log message="[$seen]"/></action></nop>',
  callee.ok,
]
const released = [receive.request('BYE'), callee.ok]
/** Messages that the transferor receives when a transfer succeeds. */
const transferred = [...notified('100 Trying'), ...notified('200 OK'), ...released]

const calls = async (w: World) => w.state.db.selectFrom('call').selectAll().orderBy('position').execute()
const eventsOf = async (w: World, sid: string) => {
  const rows = await w.state.db.selectFrom('call_event').selectAll().where('call_sid', '=', sid).orderBy('id').execute()
  return rows.map(row => JSON.parse(row.detail))
}

/** Adds a second customer who holds this number. */
async function anotherProject(w: World, e164: string): Promise<{ project_id: string; account_sid: string }> {
  const { project_id, account_sid } = await addTenant(w.state, w.master_key, [])
  await w.state.db.updateTable('number').set({ project_id }).where('e164', '=', e164).execute()
  return { project_id, account_sid }
}

/** Opens a softphone that is the only target and source of a trunk of its own, to which a number is routed. */
async function person(t: Test, w: World, index: number, more: readonly object[] = []) {
  const phone = await openSoftphone(t, `127.0.1.${index + 1}`)
  const number = w.numbers[index] ?? ''
  const target = { sip_uri: `sip:${phone.address}:${phone.port}`, transport: 'udp', priority: 1, weight: 1 }
  const trunk_id = await w.addTrunk(phone.address, { targets: [target, ...more] })
  if (number !== '') await w.routeToTrunk(number, trunk_id)
  return { phone, number, trunk_id }
}

async function rtpPeer(t: Test, address: string): Promise<RtpPeer> {
  const peer = await openRtpPeer({ address })
  t.teardown(() => peer.close())
  return peer
}

/** Ends the line's call at the final NOTIFY, before that NOTIFY is answered. */
function hangsUpWhenTold(line: Line): void {
  line.onRequest = request => {
    if (/SIP\/2\.0 200/.test(request.body)) line.hangUp()
    request.answer(200)
  }
}

/** Both say something until each has heard the other. */
async function talk(near: Line, far: Line): Promise<void> {
  const stops = [near.hum(600), far.hum(1000)]
  await Promise.all([near.hears(1000), far.hears(600)])
  await Promise.all(stops.map(stop => stop()))
}

t.test('transfers', async t => {
  const w = await sharedWorld(t)
  const at = (number: string): string => `sip:${number}@${w.sip.host}:${w.sip.port}`

  t.test('blind, to a number behind another trunk: the two remaining parties hear each other', async t => {
    const [stays, comes] = [await rtpPeer(t, TARGET), await rtpPeer(t, '127.0.0.4')]
    const desk = await waiting(t, untilBye, { rtp_port: comes.port, local_ip: '127.0.0.4' })
    const desk_trunk = await addTrunk(w, [{ ...targetOf(desk), sip_uri: `sip:127.0.0.4:${desk.port}` }], {
      sources: ['127.0.0.44/32'],
    })
    const own = w.numbers[4] ?? ''
    await routeToTrunk(w, own, desk_trunk)
    const target = await waiting(t, answersUntilCued, { rtp_port: stays.port })
    await trunkOf(w, [targetOf(target)])
    const raw = `"Desk" <sip:${own}@pbx.example;user=phone?X-Ticket=77>;q=1`
    const transferor = await begin(t, w, [
      caller.invite(),
      ...connected,
      ...refer(2, raw, 'Referred-By: <sip:boss@pbx.example>'),
      ...transferred,
    ])
    stays.sendTo(await offeredPort(target))
    comes.sendTo(await offeredPort(desk), '127.0.0.1')
    const { ok, errors, messages } = await transferor.done
    t.ok(ok, `${errors}\n${messages}`)
    await hearEachOther(stays, comes)
    const [first] = (await calls(w)).slice(-2)
    if (!first) throw new Error('no call')
    await target.cue()
    t.ok((await target.done).ok)
    const { ok: desk_ok, messages: at_desk } = await desk.done
    t.ok(desk_ok, 'the end of one is the end of the other')
    t.match(at_desk, /X-Ticket: 77/)
    t.match(at_desk, new RegExp(`Diversion: <sip:\\${w.numbers[1]}@`))
    t.notMatch(at_desk, /127\.0\.0\.[23]|pbx\.example/)
    const child = await endOf(w, (await lastCall(w)).sid)
    t.match(child, { status: 'completed', to_number: own, parent_call_sid: first.sid, direction: 'inbound' })
    t.match(await endOf(w, first.sid), { status: 'completed', ended_by: 'called' })
    t.match(await eventsOf(w, first.sid), [
      { what: 'transfer_asked', refer_to: raw, referred_by: '<sip:boss@pbx.example>' },
      { what: 'transferred', sip_code: 200 },
    ])
  })

  t.test('to a tel: number of the network, through the same admission', async t => {
    const target = await waiting(t, answersUntilCued, { calls: 2 })
    await trunkOf(w, [targetOf(target)])
    await story(t, w, [
      caller.invite(),
      ...connected,
      ...refer(2, '<tel:0803-000-4712;phone-context=+234>'),
      ...transferred,
    ])
    const child = await lastCall(w)
    t.match(child, { direction: 'outbound', to_number: '+2348030004712', from_number: w.numbers[1] })
    t.ok(JSON.parse(child.decision_trace ?? '{}').checks.length > 5, 'with a decision of its own')
    await target.cue()
    t.ok((await target.done).ok)
  })

  t.test('to an application of another project: its document runs in a separate call and sees no other', async t => {
    const stays = await rtpPeer(t, '127.0.0.4')
    const [own = '', theirs = ''] = [w.numbers[7], w.numbers[9]]
    const owner = await anotherProject(w, theirs)
    const web = await webServer(t, {
      '/voice': '<Response><Play>/tone.wav</Play></Response>',
      '/tone.wav': { type: 'audio/wav', body: wavBytes(8000, tone(1200, 4000)) },
    })
    await w.routeToApplication(theirs, `${web.url}/voice`, owner.project_id)
    const desk = await waiting(t, untilBye, { rtp_port: stays.port, local_ip: '127.0.0.4' })
    const desk_trunk = await addTrunk(w, [{ ...targetOf(desk), sip_uri: `sip:127.0.0.4:${desk.port}` }], {
      sources: ['127.0.0.48/32'],
    })
    await routeToTrunk(w, own, desk_trunk)
    const trunk_id = await trunkOf(w, [])
    await story(t, w, [caller.invite(), ...connected, ...refer(2, `<sip:${theirs}@pbx.example>`), ...transferred], {
      service: own,
    })
    await stays.heard(1200)
    t.ok((await desk.done).ok)
    const [first, child] = (await calls(w)).slice(-2)
    if (!first || !child) throw new Error('no call')
    await endOf(w, child.sid)
    await endOf(w, first.sid)
    t.match(child, { ...owner, to_number: theirs, parent_call_sid: null, trunk_id: null, direction: 'inbound' })
    t.not(first.project_id, owner.project_id)
    const form = Object.fromEntries((await web.seen('/voice')).fields)
    t.match(form, { AccountSid: owner.account_sid, CallSid: child.sid, To: theirs, From: w.numbers[1] })
    t.notMatch(JSON.stringify(form), new RegExp([first.sid, first.account_sid, own.slice(1), trunk_id].join('|')))
    const leases = await w.state.db
      .selectFrom('lease')
      .select(['project_id', 'part'])
      .where('call_sid', '=', child.sid)
      .orderBy('part')
      .execute()
    t.same(leases, [
      { project_id: owner.project_id, part: 'inbound' },
      { project_id: first.project_id, part: 'on_net' },
    ])
    t.notMatch(JSON.stringify(await eventsOf(w, first.sid)), child.sid)
  })

  t.test('to an application: its document runs on the remaining leg', async t => {
    const stays = await rtpPeer(t, TARGET)
    const own = w.numbers[5] ?? ''
    const web = await webServer(t, {
      '/voice': '<Response><Play>/tone.wav</Play></Response>',
      '/tone.wav': { type: 'audio/wav', body: wavBytes(8000, tone(1200, 4000)) },
    })
    await w.routeToApplication(own, `${web.url}/voice`)
    const target = await waiting(t, untilBye, { rtp_port: stays.port })
    await trunkOf(w, [targetOf(target)])
    await story(t, w, [caller.invite(), ...connected, ...refer(2, `<sip:${own}@pbx.example>`), ...transferred])
    await stays.heard(1200)
    t.ok((await target.done).ok)
    t.match(await endOf(w, (await lastCall(w)).sid), { status: 'completed', ended_by: 'platform' })
  })

  t.test('refused: the transferor gets the code, and the call continues', async t => {
    const target = await waiting(t, [...answers, receive.request('BYE'), callee.ok])
    const busy = await waiting(
      t,
      [receive.request('INVITE'), callee.respond(486, 'Busy Here'), receive.request('ACK')],
      { local_ip: '127.0.0.4' },
    )
    const own = w.numbers[6] ?? ''
    const desk_trunk = await addTrunk(w, [{ ...targetOf(busy), sip_uri: `sip:127.0.0.4:${busy.port}` }], {
      sources: ['127.0.0.45/32'],
    })
    await routeToTrunk(w, own, desk_trunk)
    await trunkOf(w, [targetOf(target)])
    await story(t, w, [
      caller.invite(),
      ...connected,
      // A refused number, no number, an invalid address, another scheme, another method, no dialog.
      ...refer(2, `<sip:${own}@x>`),
      ...notified('100'),
      ...notified('486 Busy Here'),
      ...refer(3, '<sip:nobody@x>'),
      ...notified('100'),
      ...notified('404'),
      ...refer(4, '<sip:x@y?Replaces=a%3Bto-tag%3Db%3Bfrom-tag%3Dc>'),
      ...notified('100'),
      ...notified('481'),
      ask('REFER', 5, 'Refer-To: <sip:a@b>, <sip:c@d>'),
      receive.response(400),
      ask('REFER', 6),
      receive.response(400),
      ask('REFER', 7, 'Refer-To: <mailto:a@b>'),
      receive.response(416),
      ask('REFER', 8, 'Refer-To: <sip:a@b;method=BYE>'),
      receive.response(501),
      ...hangUp(9),
    ])
    t.ok((await target.done).ok)
  })

  t.test(
    'a transferor that hangs up at once: the remaining party hears ringing, and the transfer continues',
    async t => {
      const [stays, comes] = [await rtpPeer(t, TARGET), await rtpPeer(t, '127.0.0.4')]
      const between = signals(t)
      const desk = await waiting(
        t,
        [
          receive.request('INVITE'),
          callee.respond(180, 'Ringing'),
          awaits('it_was_heard_ringing'),
          callee.respond(200, 'OK', { sdp: true }),
          receive.request('ACK'),
          receive.request('BYE'),
          callee.ok,
        ],
        { rtp_port: comes.port, local_ip: '127.0.0.4', signals: between },
      )
      const own = w.numbers[7] ?? ''
      const desk_trunk = await addTrunk(w, [{ ...targetOf(desk), sip_uri: `sip:127.0.0.4:${desk.port}` }], {
        sources: ['127.0.0.46/32'],
      })
      await routeToTrunk(w, own, desk_trunk)
      const target = await waiting(t, answersUntilCued, { rtp_port: stays.port })
      await trunkOf(w, [targetOf(target)])
      await story(t, w, [
        caller.invite(),
        ...connected,
        ...refer(2, `<sip:${own}@x>`, 'Refer-Sub: false'),
        ...hangUp(3),
      ])
      await stays.hears(RINGING_HZ)
      between.tell('it_was_heard_ringing')
      stays.sendTo(await offeredPort(target))
      comes.sendTo(await offeredPort(desk))
      await hearEachOther(stays, comes)
      await target.cue()
      t.ok((await target.done).ok)
      t.ok((await desk.done).ok)
    },
  )

  t.test('a transferor that is gone and a target that refuses: the remaining party is released', async t => {
    const target = await waiting(t, untilBye)
    await trunkOf(w, [targetOf(target)])
    await story(t, w, [caller.invite(), ...connected, ...refer(2, '<sip:nobody@x>', 'Refer-Sub: false'), ...hangUp(3)])
    t.ok((await target.done).ok)
  })

  t.test('attended: the transferor’s two calls become one between the far ends, and keys pass', async t => {
    const [stays, comes] = [await rtpPeer(t, TARGET), await rtpPeer(t, '127.0.0.4')]
    const desk = await waiting(t, untilBye, { rtp_port: comes.port, local_ip: '127.0.0.4' })
    const desk_trunk = await addTrunk(w, [{ ...targetOf(desk), sip_uri: `sip:127.0.0.4:${desk.port}` }], {
      sources: ['127.0.0.47/32'],
    })
    const own = w.numbers[8] ?? ''
    await routeToTrunk(w, own, desk_trunk)
    const target = await waiting(t, answersUntilCued, { rtp_port: stays.port })
    await trunkOf(w, [targetOf(target)])
    // The second call comes first, because the REFER of the first one names its dialog.
    const second = await begin(t, w, [caller.invite(), ...answered, ...released], { service: own })
    await mediaPort(second)
    const answer = second
      .messages()
      .split(/^-{5,}.*$/m)
      .find(text => /SIP\/2\.0 200/.test(text))
    const [, call_id = ''] = /^Call-ID: (\S+)/im.exec(answer ?? '') ?? []
    const [, our_tag = ''] = /^To: .*;tag=(\S+)/im.exec(answer ?? '') ?? []
    const [, peer_tag = ''] = /^From: .*;tag=(\S+)/im.exec(answer ?? '') ?? []
    const replaces = encodeURIComponent(`${call_id};to-tag=${our_tag};from-tag=${peer_tag}`)
    const first = await story(t, w, [
      caller.invite(),
      ...connected,
      ...refer(2, `<sip:${own}@pbx.example?Replaces=${replaces}>`),
      ...transferred,
    ])
    t.match(first, /NOTIFY/)
    t.ok((await second.done).ok, 'both dialogs of the transferor are ended')
    stays.sendTo(await offeredPort(target))
    comes.sendTo(await offeredPort(desk))
    await hearEachOther(stays, comes)
    await stays.sendKey('7')
    await until('the key is there', () =>
      comes.received.some(packet => packet.payload_type === 101 && packet.payload[0] === 7),
    )
    await target.cue()
    t.ok((await target.done).ok)
    t.ok((await desk.done).ok)
  })

  t.test('a transferor that hangs up before it answers the final NOTIFY ends nobody else, twice in a row', async t => {
    const [a, b, c, d] = [await person(t, w, 1), await person(t, w, 0), await person(t, w, 2), await person(t, w, 3)]
    const from = await a.phone.dial(at(b.number), { from: a.number })
    const first = await b.phone.incoming(b.number)
    await first.answer()
    hangsUpWhenTold(first)
    void first.send('REFER', { headers: { 'Refer-To': `<${at(c.number)}>` } })
    const second = await c.phone.incoming(c.number)
    await second.answer()
    t.equal(await first.over(), 'us')
    await talk(from, second)
    hangsUpWhenTold(second)
    void second.send('REFER', { headers: { 'Refer-To': `<${at(d.number)}>` } })
    const third = await d.phone.incoming(d.number)
    await third.answer()
    t.equal(await second.over(), 'us')
    await talk(from, third)
    from.hangUp()
    t.equal(await third.over(), 'peer', 'the end of one is the end of the other, also after a second transfer')
    await nothingLeft(t, w)
  })

  t.test('attended, and the transferor ends both of its calls as soon as the REFER is accepted', async t => {
    const [a, b, c] = [await person(t, w, 5), await person(t, w, 6), await person(t, w, 7)]
    const from = await a.phone.dial(at(b.number), { from: a.number })
    const first = await b.phone.incoming(b.number)
    await first.answer()
    const consultation = await b.phone.dial(at(c.number), { from: b.number })
    const second = await c.phone.incoming(c.number)
    await second.answer()
    await Promise.all([consultation.answered(), from.answered()])
    // A telephone knows of its answer before the platform has heard its ACK.
    await until('both calls are answered', async () => {
      const rows = await w.state.db.selectFrom('call').select('status').where('status', '=', 'in-progress').execute()
      return rows.length === 2
    })
    const { call_id, local_tag, remote_tag } = consultation.call?.dialog ?? {}
    const replaces = encodeURIComponent(`${call_id};to-tag=${remote_tag};from-tag=${local_tag}`)
    const refer = { headers: { 'Refer-To': `<${at(c.number)}?Replaces=${replaces}>` } }
    t.match(await first.send('REFER', refer), { status: 202 })
    consultation.hangUp()
    first.hangUp()
    await talk(from, second)
    second.hangUp()
    t.equal(await from.over(), 'peer')
    await nothingLeft(t, w)
  })

  t.test('INVITE with Replaces takes the place of an answered leg, but only of the caller’s own tenant', async t => {
    const [a, b] = [await person(t, w, 21), await person(t, w, 22)]
    await w.routeToTrunk(w.numbers[0] ?? '', b.trunk_id)
    await w.routeToTrunk(w.numbers[6] ?? '', a.trunk_id)
    const from = await a.phone.dial(at(w.numbers[0] ?? ''), { from: w.numbers[6] ?? '' })
    const first = await b.phone.incoming(w.numbers[0] ?? '')
    await first.answer()
    const { call_id = '', local_tag = '', remote_tag = '' } = first.call?.dialog ?? {}
    const replaces = (to_tag: string, more = '') => ({
      headers: { Require: 'replaces', Replaces: `${call_id};to-tag=${to_tag};from-tag=${local_tag}${more}` },
      from: w.numbers[0] ?? '',
    })
    const stranger = await person(t, w, 23)
    const belongsTo = (subaccount_id: string | null) =>
      w.state.transaction(async trx => {
        await trx.updateTable('trunk').set({ subaccount_id }).where('id', '=', stranger.trunk_id).execute()
        await bumpConfiguration(trx)
      })
    await belongsTo('sub_other')
    await w.routeToTrunk(w.numbers[6] ?? '', a.trunk_id)
    const refused = async (phone: Softphone, how: ReturnType<typeof replaces>): Promise<number> => {
      const line = await phone.dial(at(w.numbers[0] ?? ''), how)
      return until('a final response', () => line.final ?? undefined)
    }
    t.equal(await refused(stranger.phone, replaces(remote_tag)), 481, 'a dialog of another tenant is unknown')
    await belongsTo(null)
    t.equal(await refused(b.phone, replaces('wrong')), 481)
    t.equal(await refused(b.phone, replaces(remote_tag, ';early-only')), 486)
    t.equal(first.ended, null)

    const second = await b.phone.dial(at(w.numbers[0] ?? ''), replaces(remote_tag))
    await second.answered()
    t.equal(await first.over(), 'peer', 'the replaced dialog is ended')
    await talk(from, second)
    from.hangUp()
    t.equal(await second.over(), 'peer')
    await nothingLeft(t, w)
  })

  t.test('INVITE with Replaces picks up a call while its telephone rings', async t => {
    const [a, b] = [await person(t, w, 24), await person(t, w, 25)]
    await w.routeToTrunk(w.numbers[0] ?? '', b.trunk_id)
    await w.routeToTrunk(w.numbers[6] ?? '', a.trunk_id)
    const from = await a.phone.dial(at(w.numbers[0] ?? ''), { from: w.numbers[6] ?? '' })
    const first = await b.phone.incoming(w.numbers[0] ?? '')
    first.ring()
    await until('the caller hears of it', () => from.progress.includes(180))
    const { call_id = '', local_tag = '', remote_tag = '' } = first.call?.dialog ?? {}
    const second = await b.phone.dial(at(w.numbers[0] ?? ''), {
      headers: { Replaces: `${call_id};to-tag=${remote_tag};from-tag=${local_tag};early-only` },
      from: w.numbers[0] ?? '',
    })
    await second.answered()
    t.equal(await first.over(), 'cancelled')
    await from.answered()
    await talk(from, second)
    second.hangUp()
    t.equal(await from.over(), 'peer')
    await nothingLeft(t, w)
  })

  t.test('no call, dialog, port or lease remains', t => nothingLeft(t, w))
})
