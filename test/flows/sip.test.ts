import { tone } from '../support/audio.ts'
import {
  addTrunk,
  answered,
  begin,
  endOf,
  hangsUpOnCue,
  hangUp,
  healthy,
  lastCall,
  mediaPort,
  nothingLeft,
  PEER,
  routeToTrunk,
  story,
  TARGET,
  targetOf,
  trunkOf,
  untilBye,
  WORLD,
  waiting,
} from '../support/b2bua-world.ts'
import { wasDecided } from '../support/busy.ts'
import t from '../support/harness/index.ts'
import { digestAnswer, openPhone } from '../support/phone.ts'
import { recordsSound } from '../support/recordings.ts'
import { openRtpPeer } from '../support/rtp-peer.ts'
import { sharedWorld } from '../support/shared-world.ts'
import { ackOf, answerKeepingTo, answerWith, audioSdp, inDialog, KEPT_TO, reInvite } from '../support/sip-steps.ts'
import { callee, caller, provisionals, receive, sipp } from '../support/sipp.ts'
import { addTenant } from '../support/tenants.ts'
import { PATIENCE_MS, until } from '../support/wait.ts'
import { webServer } from '../support/web.ts'
import { routeToApplication, type World } from '../support/world.ts'

// What a trunk may do, and what happens between two legs, in addition to b2bua-stories. A scripted peer at 127.0.0.2
// and the targets of its trunk at 127.0.0.3 are SIPp, which is independent of our stack.

t.test('between two legs', async t => {
  const w = await sharedWorld(t)

  t.test('rejects an unusable re-offer, and the call continues unchanged', async t => {
    const target = await waiting(t, untilBye)
    await trunkOf(w, [targetOf(target)])
    await story(t, w, [
      caller.invite(),
      ...answered,
      reInvite(2, audioSdp({ version: 2, payloads: '3', maps: 'a=rtpmap:3 GSM/8000' })),
      receive.response(488),
      ackOf(2),
      reInvite(3, audioSdp({ version: 3 })),
      receive.response(200, { dialog: true }),
      ackOf(3),
      inDialog('UPDATE', 4),
      receive.response(200),
      inDialog('OPTIONS', 5),
      receive.response(200),
      ...hangUp(6),
    ])
    t.ok((await target.done).ok)
  })

  t.test(
    'session timers: keeps the caller’s refresher, and answers too small an interval with the minimum',
    async t => {
      const target = await waiting(t, untilBye)
      await trunkOf(w, [targetOf(target)])
      const messages = await story(t, w, [
        caller.invite({ headers: 'Supported: timer\nSession-Expires: 600;refresher=uac' }),
        ...provisionals,
        answerWith(200, 'Session-Expires: 600;refresher=uac'),
        caller.ack,
        inDialog('UPDATE', 2, { headers: 'Supported: timer\nSession-Expires: 600;refresher=uac' }),
        answerWith(200, 'Session-Expires: 600;refresher=uac'),
        inDialog('UPDATE', 3, { headers: 'Supported: timer\nSession-Expires: 30' }),
        answerWith(422, 'Min-SE: 90'),
        ...hangUp(4),
      ])
      t.match(messages, /Require: timer/)
      t.ok((await target.done).ok)
      await story(t, w, [
        caller.invite({ headers: 'Supported: timer\nSession-Expires: 30' }),
        receive.response(100, { optional: true }),
        answerWith(422, 'Min-SE: 90'),
        caller.ackOfFailure,
      ])
    },
  )

  t.test('asserts the identity, passes X- headers to the tenant’s own trunk, and hides the peer', async t => {
    const target = await waiting(t, untilBye)
    await trunkOf(w, [targetOf(target)])
    const headers =
      'X-Case: 42\nX-Strowger-Evil: 1\nPrivacy: id\nDiversion: <sip:+2348031112222@x.example>;reason=no-answer'
    await story(t, w, [caller.invite({ headers }), ...answered, ...hangUp(2)])
    const { ok, messages } = await target.done
    t.ok(ok)
    t.match(messages, /X-Case: 42/)
    t.notMatch(messages, /X-Strowger-Evil/)
    t.match(messages, /X-Strowger-CallSid: CA[0-9a-f]{32}/)
    t.match(messages, /From: "Anonymous" <sip:anonymous@anonymous.invalid>/i)
    t.match(messages, new RegExp(`P-Asserted-Identity: <sip:\\${w.numbers[1]}@`))
    t.match(messages, /Privacy: id/)
    t.match(messages, /Diversion: <sip:\+2348031112222@/)
    t.match(messages, /Max-Forwards: 69/)
    t.notMatch(messages, /127\.0\.0\.2/)
  })

  t.test('rejects an INVITE whose Max-Forwards is used up', async t => {
    const target = await waiting(t, untilBye)
    await trunkOf(w, [targetOf(target)])
    await story(t, w, [
      caller.invite().replace('Max-Forwards: 70', 'Max-Forwards: 0'),
      receive.response(100, { optional: true }),
      receive.response(483),
      caller.ackOfFailure,
    ])
  })

  t.test('rejects a call that its target sends back as a loop', async t => {
    const target = await waiting(t, untilBye)
    await trunkOf(w, [targetOf(target)])
    const going = await begin(t, w, hangsUpOnCue)
    await mediaPort(going)
    const sid = await until(
      'our INVITE is at the target',
      () => /X-Strowger-CallSid: (CA[0-9a-f]{32})/.exec(target.messages())?.[1],
    )
    await story(t, w, [
      caller.invite({ headers: `X-Strowger-CallSid: ${sid}` }),
      receive.response(100, { optional: true }),
      receive.response(482),
      caller.ackOfFailure,
    ])
    await going.cue()
    t.ok((await going.done).ok)
  })

  t.test('fails over after 503, and not after busy', async t => {
    const failing = await waiting(t, [
      receive.request('INVITE'),
      callee.respond(503, 'Service Unavailable'),
      receive.request('ACK'),
    ])
    const taking = await waiting(t, untilBye)
    await trunkOf(w, [targetOf(failing, 1), targetOf(taking, 2)])
    await story(t, w, [caller.invite(), ...answered, ...hangUp(2)])
    t.ok((await failing.done).ok)
    t.ok((await taking.done).ok)
    const call = await lastCall(w)
    await endOf(w, call.sid)
    const attempts = await w.state.db
      .selectFrom('call_attempt')
      .selectAll()
      .where('call_sid', '=', call.sid)
      .orderBy('sequence')
      .execute()
    t.match(attempts, [
      { result: 'refused', sip_code: 503 },
      { result: 'answered', sip_code: 200 },
    ])

    const busy = await waiting(t, [
      receive.request('INVITE'),
      callee.respond(486, 'Busy Here', { headers: 'Reason: Q.850;cause=17' }),
      receive.request('ACK'),
    ])
    const never = await waiting(t, untilBye)
    await trunkOf(w, [targetOf(busy, 1), targetOf(never, 2)])
    await story(t, w, [
      caller.invite(),
      receive.response(100, { optional: true }),
      answerWith(486, 'Reason: Q.850;cause=17'),
      caller.ackOfFailure,
    ])
    t.notMatch(never.messages(), /INVITE sip:/)
    t.match(await endOf(w, (await lastCall(w)).sid), { status: 'busy', sip_code: 486, reason: 'peer_busy' })
  })

  t.test('follows a redirect only where its target allows it', async t => {
    const taking = await waiting(t, untilBye)
    const moved = (contact: string) => [
      receive.request('INVITE'),
      callee.respond(302, 'Moved').replace(/Contact: .*/, `Contact: <${contact}>`),
      receive.request('ACK'),
    ]
    const near = await waiting(t, moved(`sip:+2348030004799@${TARGET}:${taking.port}`))
    await trunkOf(w, [{ ...targetOf(near), redirects: 'same_host' }])
    await story(t, w, [caller.invite(), ...answered, ...hangUp(2)])
    const { ok, messages } = await taking.done
    t.ok(ok)
    t.match(messages, new RegExp(`^Diversion: <sip:\\${WORLD}@[^>]*>;reason=unconditional;counter=1`, 'm'))

    const far = await waiting(t, moved(`sip:${WORLD}@127.0.0.77:5060`))
    await trunkOf(w, [{ ...targetOf(far), redirects: 'listed' }])
    const fails = [
      caller.invite(),
      receive.response(100, { optional: true }),
      receive.response(480),
      caller.ackOfFailure,
    ]
    await story(t, w, fails)
    const off = await waiting(t, moved(`sip:${WORLD}@${TARGET}:5060`))
    await trunkOf(w, [targetOf(off)])
    await story(t, w, fails)
  })

  t.test('a digest trunk accepts the right password, and rejects a wrong one and a replay', async t => {
    const target = await waiting(t, untilBye)
    // Before the trunk is added: once its target is healthy, a node runs without the sources of earlier stories.
    await w.state.db.deleteFrom('trunk_source').execute()
    const { id, username, password } = await w.addDigestTrunk({ name: 'Roaming PBX', targets: [targetOf(target)] })
    await healthy(w, id, 1)
    const phone = await openPhone(t, { ...w.sip, local_ip: PEER })
    const invite = (cseq: number, authorization = '') =>
      phone.invite({ called: WORLD, caller: w.numbers[1] ?? '', cseq, authorization })
    const challenge = await until('strangers are challenged', async () => {
      const answer = await invite(1)
      return answer.status === 401 && answer
    })
    const offered = challenge.headers.filter(line => /^www-authenticate:/i.test(line))
    t.match(offered[0], /algorithm=SHA-256/, 'the stronger one first')
    t.match(offered[1], /algorithm=MD5/)
    const nonce = /nonce="([^"]+)"/.exec(offered[0] ?? '')?.[1] ?? ''
    const realm = /realm="([^"]+)"/.exec(offered[0] ?? '')?.[1] ?? ''
    const answer = (algorithm: 'MD5' | 'SHA-256', word: string, nc: string) =>
      digestAnswer({ algorithm, username, password: word, realm, nonce, nc, uri: phone.uri(WORLD) })
    t.equal((await invite(2, answer('SHA-256', 'wrong', '00000001'))).status, 401)
    t.equal((await invite(3, answer('SHA-256', password, '00000001'))).status, 200)
    t.equal((await phone.bye(4)).status, 200)
    t.ok((await target.done).ok)
    const repeated = await phone.anew().invite({
      called: WORLD,
      caller: w.numbers[1] ?? '',
      cseq: 1,
      authorization: answer('MD5', password, '00000001'),
    })
    t.equal(repeated.status, 401, 'an answer works once')
    t.match(
      repeated.headers.find(line => /^www-authenticate:/i.test(line)),
      /stale=true/,
    )
  })

  t.test('a digest user registers, and is called as a target of its trunk', async t => {
    await trunkOf(w, [])
    const { id, username, password } = await w.addDigestTrunk({ name: 'Desk phones' })
    const listening = await waiting(t, untilBye)
    const phone = await openPhone(t, { ...w.sip, local_ip: TARGET })
    const contact = `sip:desk@${TARGET}:${listening.port}`
    const challenge = await until('a REGISTER is challenged', async () => {
      const answer = await phone.register({ cseq: 1, contact })
      return answer.status === 401 && answer
    })
    const offered = challenge.headers.find(line => /^www-authenticate:/i.test(line)) ?? ''
    const nonce = /nonce="([^"]+)"/.exec(offered)?.[1] ?? ''
    const realm = /realm="([^"]+)"/.exec(offered)?.[1] ?? ''
    const uri = `sip:${w.sip.host}:${w.sip.port}`
    const facts = { algorithm: 'SHA-256', username, realm, nonce, uri, method: 'REGISTER' } as const
    const authorize = (word: string, nc: string): string => digestAnswer({ ...facts, password: word, nc })
    t.equal((await phone.register({ cseq: 2, contact, authorization: authorize('wrong', '00000001') })).status, 401)
    const bound = await until('the trunk is applied', async () => {
      const answer = await phone.register({ cseq: 3, contact, authorization: authorize(password, '00000002') })
      return answer.status === 200 && answer
    })
    t.match(
      bound.headers.find(line => /^contact:/i.test(line)),
      new RegExp(`<${contact}>;expires=3[56]\\d\\d`),
    )

    const own = w.numbers[5] ?? ''
    await w.state.db.updateTable('number').set({ route_kind: 'trunk', route_id: id }).where('e164', '=', own).execute()
    await trunkOf(w, [])
    await story(t, w, [caller.invite(), ...answered, ...hangUp(2)], { service: own })
    const { ok, messages } = await listening.done
    t.ok(ok)
    t.match(messages, new RegExp(`INVITE ${contact} SIP`))
    t.match(messages, new RegExp(`To: <sip:\\${own}@`), 'the number that was called is told')
  })

  t.test('a recording policy records both sides, the caller left, after consent', async t => {
    const rtp = { peer: await openRtpPeer({ address: PEER }), target: await openRtpPeer({ address: TARGET }) }
    t.teardown(() => {
      rtp.peer.close()
      rtp.target.close()
    })
    const target = await waiting(t, untilBye, { rtp_port: rtp.target.port })
    const trunk_id = await trunkOf(w, [targetOf(target)])
    const at = new Date().toISOString()
    const { project_id } = w
    const policy = await w.manage(
      'POST',
      '/outbound-policies',
      { name: 'Recorded', recording_channels: 2, recording_mode: 'all', recording_retention_days: 30 },
      { 'idempotency-key': 'policy' },
    )
    t.equal(policy.status, 201, JSON.stringify(policy.body))
    await w.state.db
      .insertInto('policy_attachment')
      .values({
        id: 'att_1',
        policy_id: policy.body.id,
        project_id,
        service_type: 'trunk',
        service_id: trunk_id,
        note: null,
        outbound_enabled: 1,
        attached_at: at,
        applied_at: at,
      })
      .execute()
    const peer = await sipp(t, {
      steps: hangsUpOnCue,
      to: w.sip,
      service: WORLD,
      local_ip: PEER,
      keys: { rtp_port: rtp.peer.port, from: w.numbers[1] ?? '' },
    })
    rtp.peer.sendTo(await mediaPort(peer))
    const { sid } = await lastCall(w)
    await rtp.peer.sendUntil(tone(700, PATIENCE_MS), recordsSound(w, sid))
    await peer.cue()
    t.ok((await peer.done).ok)
    const row = await until('the recording is complete', () =>
      w.state.db
        .selectFrom('recording')
        .selectAll()
        .where('call_sid', '=', sid)
        .where('status', '=', 'completed')
        .executeTakeFirst(),
    )
    t.match(row, { channels: 2, source: 'Trunking', track: 'both' })
    t.ok(row.expires_at && Date.parse(row.expires_at) - Date.parse(row.started_at) === 30 * 86_400_000)
  })

  t.test('a call from another tenant’s peer reveals no more than one from the network', async t => {
    const [to_desk, to_application] = ['+2342019999911', '+2342019999912']
    const called = await addTenant(w.state, w.master_key, [to_desk, to_application])
    const authorization = `Bearer ${called.api_key}`
    const asCalled: World = {
      ...w,
      manage: (method, path, body, more) => w.manage(method, path, body, { ...more, authorization }),
    }
    const web = await webServer(t, {
      '/voice': '<Response><Gather timeout="600"/></Response>',
      '/over': { status: 204 },
    })
    await routeToApplication(w.state, called.project_id, to_application, `${web.url}/voice`, `${web.url}/over`)
    const desk = await waiting(t, untilBye)
    const desk_trunk = await addTrunk(asCalled, [targetOf(desk)], { sources: ['127.0.0.49/32'] })
    await routeToTrunk(w, to_desk, desk_trunk)
    const trunk_id = await trunkOf(w, [])
    const { body: own } = await w.manage('GET', `/trunks/${trunk_id}`)

    const headers = 'X-Ticket: of-the-caller\nUser-Agent: PBX-of-the-caller'
    const calling = [caller.invite({ headers }), ...provisionals, answerKeepingTo, caller.ack]
    const refers = [
      inDialog('REFER', 2, {
        to: KEPT_TO,
        headers: 'Refer-To: <sip:secretary@10.7.7.7>\nReferred-By: <sip:boss@10.7.7.7>',
      }),
      receive.response(202),
      ...Array.from({ length: 2 }, () => [receive.request('NOTIFY'), callee.ok]).flat(),
    ]
    const bye = (cseq: number) => [inDialog('BYE', cseq, { to: KEPT_TO }), receive.response(200)]
    const heard = await story(t, w, [...calling, ...bye(2)], { service: to_application })
    const crossed = await story(t, w, [...calling, ...refers, ...bye(3)], { service: to_desk })
    const { ok, messages: at_desk } = await desk.done
    t.ok(ok)
    await web.seen('/over')
    const call_ids = [heard, crossed].flatMap(text => /^Call-ID: (\S+)/im.exec(text)?.[1] ?? [])
    await until('the end of each dialog is kept', async () => {
      const attempts = await w.state.db
        .selectFrom('call_attempt')
        .innerJoin('call', 'call.sid', 'call_attempt.call_sid')
        .select('call_attempt.sip_call_id')
        .where('call.trunk_id', '=', desk_trunk)
        .execute()
      const dialogs = [...call_ids, ...attempts.map(attempt => attempt.sip_call_id)]
      const ended = await w.state.db
        .selectFrom('sip_message')
        .select('sip_call_id')
        .distinct()
        .where('text', 'like', 'BYE %')
        .where('sip_call_id', 'in', dialogs)
        .execute()
      return ended.length === 3
    })

    const { body } = await asCalled.manage('GET', '/calls')
    const all: { id: string; trunk_id: string | null; reason: string | null }[] = body.data
    const calls = all.filter(wasDecided)
    t.same(
      calls.map(call => call.trunk_id),
      [desk_trunk, null],
    )
    const paths = calls.flatMap(({ id }) => ['', '/ladder', '/decision', '/media'].map(what => `/calls/${id}${what}`))
    const told: Record<string, string> = {
      web: web.requests.map(({ fields }) => fields.toString()).join(),
      desk: at_desk,
    }
    for (const path of paths) told[path] = (await asCalled.manage('GET', path)).bytes.toString()
    t.match(
      told[`/calls/${calls[0]?.id}/ladder`],
      /INVITE sip:\+2342019999911@127\.0\.0\.3/,
      'the dialog of the called one',
    )
    const of_caller = [PEER, '10.7.7.7', 'of-the-caller', trunk_id, own.signaling_fqdn, w.project_id, w.account_sid]
    for (const [by, text] of Object.entries(told))
      for (const secret of [...of_caller, ...call_ids])
        t.notOk(decodeURIComponent(text).includes(secret), `${secret} is told by ${by}`)
  })

  t.test('no call, dialog, port or lease remains', t => nothingLeft(t, w))
})
