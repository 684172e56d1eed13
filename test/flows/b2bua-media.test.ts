import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mediaQualityOf } from '../../core/state/calls/media-quality.ts'
import { Peer, reply, starts } from '../conformance/edge/peer.ts'
import { encodeG711, tone } from '../support/audio.ts'
import { addTrunk, lastCall, nothingLeft } from '../support/b2bua-world.ts'
import t, { type Test } from '../support/harness/index.ts'
import { operatorKey } from '../support/operators.ts'
import { capture } from '../support/pcap.ts'
import { freeRow } from '../support/ports.ts'
import { reportWithVoipMetrics } from '../support/rtcp.ts'
import { openRtpPeer } from '../support/rtp-peer.ts'
import { sharedWorld } from '../support/shared-world.ts'
import { type Line, openSoftphone, type Softphone } from '../support/softphone.ts'
import { PATIENCE_MS, until } from '../support/wait.ts'
import type { World } from '../support/world.ts'

// What both sides of a call hear while it is set up, held, moved and renegotiated (user-asks rows 2, 4, 9, 10). Two
// softphones, the trunk's peer and its target, measure tones.

const CALLED = '+2348030004711'
/**
 * Sends a key in both ways, as some telephones do, and another key after it. Resolves with how often the first one was
 * heard. When a process stands still, one of them comes too late to be the other's echo, so it tries other keys then.
 */
async function inBothWays(from: Line, to: Line, first: 'events' | 'info'): Promise<number> {
  const count = (wanted: string) => to.rtp.keys().filter(heard => heard.key === wanted).length
  const inform = (key: string) => from.send('INFO', { body: key, content_type: 'application/dtmf' })
  let heard = 0
  for (const [key, after] of first === 'events' ? ['93', '82', '41'] : ['A*', 'B#', 'C0']) {
    if (!key || !after) break
    if (first === 'events') await from.press(key)
    await inform(key)
    if (first === 'info') await from.press(key)
    // Keys of INFOs are passed on in their order.
    await inform(after)
    await until('the next key is heard', () => count(after) > 0)
    heard = count(key)
    if (heard === 1) break
  }
  return heard
}

/** Nigeria's ring tone (ITU-T E.180 Supplement 2). */
const RINGING_HZ = 425

interface Town {
  readonly w: World
  readonly peer: Softphone
  readonly target: Softphone
}

async function town(t: Test): Promise<Town> {
  const w = await sharedWorld(t)
  const [peer, target] = [await openSoftphone(t, '127.0.0.21'), await openSoftphone(t, '127.0.0.22')]
  await addTrunk(w, [{ sip_uri: `sip:${target.address}:${target.port}`, transport: 'udp', priority: 1, weight: 1 }], {
    sources: [`${peer.address}/32`],
  })
  return { w, peer, target }
}

const dial = ({ w, peer }: Town): Promise<Line> =>
  peer.dial(`sip:${CALLED}@${w.sip.host}:${w.sip.port}`, { from: w.numbers[1] ?? '' })

async function connected(world: Town): Promise<{ near: Line; far: Line }> {
  const near = await dial(world)
  const far = await world.target.incoming(CALLED)
  const acknowledged = far.answer()
  await near.answered()
  await acknowledged
  return { near, far }
}

/** The gap of a sender that runs on time. Without CPU time its packets arrive as over a bad line. */
const leastMos = ({ jitter_mean_ms }: { readonly jitter_mean_ms: number }): number => (jitter_mean_ms < 10 ? 4 : 1)

const TONES = [500, 600, 700, 900, 1000, 1200, 1350, 1500]
let talks = 0

/** Waits until each hears the other, by tones that were not used just before. */
async function talk(near: Line, far: Line): Promise<void> {
  const of = (offset: number): number => TONES[(2 * talks + offset) % TONES.length] ?? 0
  const [ours, theirs] = [of(0), of(1)]
  talks++
  const stops = [near.hum(ours), far.hum(theirs)]
  await Promise.all([near.hears(theirs), far.hears(ours)])
  await Promise.all(stops.map(stop => stop()))
}

/** The packets that a trunk's figures say its calls received. */
/** The media of a carrier since a time, as its operator reads them. */
async function carrierMedia(w: World, since_ms: number, carrier_id = 'car_media') {
  const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10)
  const range = `from=${day(since_ms)}&to=${day(Date.now())}`
  const answer = await fetch(`${w.base_url}/operator/v1/carriers/${carrier_id}/metrics?${range}`, {
    headers: { Authorization: `Bearer ${await operatorKey(w)}` },
  })
  const { total } = JSON.parse(await answer.text())
  return total.media
}

async function packetsOfTrunk({ state }: World, trunk_id: string | null): Promise<number> {
  const { total } = await state.db
    .selectFrom('call_step')
    .select(eb => eb.fn.sum<number>('packets_received').as('total'))
    .where('subject_id', '=', trunk_id)
    .where('step_ms', '=', 60_000)
    .executeTakeFirstOrThrow()
  return Number(total ?? 0)
}

/** Sends a last frame that no other is like, and waits until it has passed: so has everything before it. */
async function passed(from: Line, to: Line): Promise<void> {
  const last = Int16Array.from({ length: 160 }, (_, at) => 90 * (at - 80))
  const payload = encodeG711('PCMU', last)
  await from.rtp.send(last)
  await until('the last frame has passed', () => to.rtp.received.some(packet => packet.payload.equals(payload)))
}

/** Waits for this many more packets. */
async function stillReceives(t: Test, line: Line, packets: number): Promise<void> {
  const wanted = line.rtp.received.length + packets
  t.ok((await line.rtp.packets(wanted)).length >= wanted, 'the stream goes on')
}

/** Adds a carrier with this address and a number routed to a trunk. Resolves when both are in force. */
async function carrierToTrunk(w: World, address: string, e164: string, trunk_id: string): Promise<void> {
  const now = new Date().toISOString()
  await w.state.transaction(async trx => {
    await trx
      .insertInto('carrier')
      .values({
        id: 'car_media',
        name: 'Telco',
        codecs: '["PCMU"]',
        enabled: 1,
        sandbox: 0,
        revision: 1,
        created_at: now,
      })
      .execute()
    await trx
      .insertInto('carrier_source')
      .values({ id: 'cs_media', carrier_id: 'car_media', cidr: `${address}/32` })
      .execute()
  })
  await w.routeToTrunk(e164, trunk_id)
}

t.test('media between two legs', async t => {
  const world = await town(t)
  const { w } = world

  t.test('hold and resume from either side: the other hears music or silence without a gap', async t => {
    const { near, far } = await connected(world)
    await talk(near, far)
    for (const [holder, other] of [
      [near, far],
      [far, near],
    ] as const) {
      t.match(await holder.reoffer('sendonly'), /a=recvonly/)
      const music = holder.hum(440)
      await other.hears(440)
      await music()
      holder.sdpAddress = '0.0.0.0'
      t.match(await holder.reoffer(), /a=recvonly/, 'the hold of RFC 2543')
      const oldMusic = holder.hum(620)
      await other.hears(620)
      await oldMusic()
      holder.sdpAddress = null
      t.match(await holder.reoffer('inactive'), /a=inactive/)
      await stillReceives(t, other, 60)
      t.ok(other.level(440) < -60, 'silence')
      t.match(await holder.reoffer(), /a=sendrecv/)
      await talk(near, far)
      t.equal(other.requests.length, 0, 'the other side is asked nothing')
    }
    const ssrcs = new Set(far.rtp.received.map(packet => packet.ssrc))
    t.equal(ssrcs.size, 1, 'one stream through holds and silence')
    near.hangUp()
    await far.over()
    const whats = await until('all is on record', async () => {
      const events = await w.state.db
        .selectFrom('call_event')
        .innerJoin('call', 'call.sid', 'call_event.call_sid')
        .select('detail')
        .where('kind', '=', 'state')
        .where('project_id', '=', w.project_id)
        .orderBy('call_event.id')
        .execute()
      const found = events.map(row => JSON.parse(row.detail)).filter(detail => /held|resumed/.test(detail.what))
      return found.length >= 4 && found
    })
    t.match(whats, [
      { what: 'held', leg: 'a' },
      { what: 'resumed', leg: 'a' },
      { what: 'held', leg: 'b' },
      { what: 'resumed', leg: 'b' },
    ])
  })

  t.test('a re-INVITE to another codec and back: transcodes while they differ, and both are heard', async t => {
    const { near, far } = await connected(world)
    await talk(near, far)
    const a_law = await openRtpPeer({ address: world.peer.address, codec: 'PCMA', event_payload_type: 101 })
    t.teardown(() => a_law.close())
    t.match(await near.moveTo(a_law), /m=audio \d+ RTP\/AVP 8/)
    await talk(near, far)
    const u_law = await openRtpPeer({ address: world.peer.address, codec: 'PCMU', event_payload_type: 101 })
    t.teardown(() => u_law.close())
    t.match(await near.moveTo(u_law), /m=audio \d+ RTP\/AVP 0/)
    await talk(near, far)
    t.equal(far.requests.length, 0)
    far.hangUp()
    await near.over()
  })

  t.test('repeated re-INVITEs from both sides at once are each answered, and audio continues', async t => {
    const { near, far } = await connected(world)
    for (let round = 0; round < 10; round++) {
      const answers = await Promise.all([near.reoffer(), far.reoffer()])
      for (const sdp of answers) t.match(sdp, /^m=audio [1-9][\s\S]*a=sendrecv/m)
    }
    await talk(near, far)
    near.hangUp()
    await far.over()
  })

  t.test('media follows a peer that moves to another port or address', async t => {
    const { near, far } = await connected(world)
    await talk(near, far)
    for (const [line, address] of [
      [near, world.peer.address],
      [far, world.target.address],
      [near, '127.0.0.23'],
      [far, '127.0.0.24'],
    ] as const) {
      const moved = await openRtpPeer({ address, codec: 'PCMU', event_payload_type: 101 })
      t.teardown(() => moved.close())
      await line.moveTo(moved)
      await talk(near, far)
    }
    near.hangUp()
    await far.over()
  })

  t.test('a call that goes on or is forwarded, and rings then, rings at the caller too', async t => {
    for (const before of [181, 182, 183]) {
      const near = await dial(world)
      const far = await world.target.incoming(CALLED)
      far.call?.ring(before)
      await until(`${before}`, () => near.progress.includes(before))
      far.ring()
      await until('180', () => near.progress.includes(180))
      far.call?.ring(before)
      far.call?.ring(180)
      const acknowledged = far.answer()
      await near.answered()
      await acknowledged
      t.same(near.progress, [before, 180], 'each once')
      near.hangUp()
      await far.over()
    }
  })

  t.test('early media is heard before the answer, and replaced by the conversation after it', async t => {
    const near = await dial(world)
    const far = await world.target.incoming(CALLED)
    far.early()
    const announcement = far.hum(800)
    await until('183', () => near.progress.includes(183))
    await near.hears(800)
    t.equal(near.final, null, 'unanswered')
    await announcement()
    const acknowledged = far.answer()
    await near.answered()
    await acknowledged
    await talk(near, far)
    near.hangUp()
    await far.over()
  })

  t.test('the caller hears ringing until announced early media has sound', async () => {
    const near = await dial(world)
    const far = await world.target.incoming(CALLED)
    far.early()
    await near.hears(RINGING_HZ)
    const announcement = far.hum(800)
    await near.hears(800)
    await until('no ring tone any more', () => near.level(RINGING_HZ) < -40)
    await announcement()
    near.hangUp()
    await far.over()
  })

  t.test('with early media of two forks the caller hears the latest, then the one that answers', async t => {
    const forks = await Promise.all([openRtpPeer(), openRtpPeer()])
    t.teardown(() => forks.map(fork => fork.close()))
    const [one, two] = forks
    const target = await Peer.open(t)
    const peer = await openSoftphone(t, '127.0.0.27')
    const added = addTrunk(w, [{ sip_uri: `sip:127.0.0.1:${target.port}`, transport: 'udp', priority: 1, weight: 1 }], {
      sources: [`${peer.address}/32`],
    })
    const answer = (asked: string, status: number, tag: string, body = ''): void =>
      target.send(reply(asked, status, tag, body, target.port), w.sip.port)
    answer(await target.next(starts('OPTIONS')), 200, 'options')
    await added
    const near = await dial({ ...world, peer })
    const invite = await target.next(starts('INVITE'))
    const port = Number(/^m=audio (\d+)/m.exec(invite)?.[1])
    let over = false
    const hums = Promise.all(
      forks.map(async (fork, index) => {
        fork.sendTo(port)
        while (!over) await fork.send(tone(index === 0 ? 500 : 1200, 200))
      }),
    )
    try {
      answer(invite, 183, 'one', one.sdp())
      await near.hears(500)
      answer(invite, 183, 'two', two.sdp())
      await near.hears(1200)
      answer(invite, 200, 'one', one.sdp())
      await target.next(starts('ACK'))
      await near.answered()
      await near.hears(500)
    } finally {
      // Hangs up before the sockets are closed, also after a failure.
      over = true
      await hums
    }
    near.hangUp()
    answer(await target.next(starts('BYE')), 200, 'one')
  })

  t.test('keys: RFC 4733 events pass once each way, and INFO becomes RFC 4733', async t => {
    const { near, far } = await connected(world)
    await talk(near, far)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      await from.press('5')
      await until('the key is heard', () => to.rtp.keys().some(({ key }) => key === '5'))
      await from.send('INFO', { body: 'Signal=7\r\nDuration=160\r\n', content_type: 'application/dtmf-relay' })
      await until('the key of the INFO is heard', () => to.rtp.keys().some(({ key }) => key === '7'))
      t.same(
        to.rtp.keys().map(({ key }) => key),
        ['5', '7'],
        'each key once',
      )
      // A pause of 150 ms ends a key, and what comes then under a time of its own is another one.
      let moving: string[] = []
      await from.rtp.unpaused(async () => {
        const before = to.rtp.keys().length
        const later = () => to.rtp.keys().slice(before)
        await from.rtp.sendKey('6', 100, { moving: true })
        await from.press('D')
        await until('the key after the moving one is heard', () => later().some(({ key }) => key === 'D'))
        moving = later().map(({ key }) => key)
      })
      t.same(moving, ['6', 'D'], 'a key whose time moves once')
      t.equal(await inBothWays(from, to, 'events'), 1, 'a key in both ways counts once')
      t.equal(await inBothWays(from, to, 'info'), 1, 'a key whose INFO overtakes its events counts once')
      t.equal(to.requests.length, 0, 'no INFO of ours')
    }
    near.hangUp()
    await far.over()
  })

  t.test('media goes to the source of the packets of a peer behind NAT, not to its private SDP address', async () => {
    const near = await dial(world)
    const far = await world.target.incoming(CALLED)
    far.sdpAddress = '10.255.0.9'
    const acknowledged = far.answer()
    await near.answered()
    await acknowledged
    await talk(near, far)
    near.hangUp()
    await far.over()
  })

  t.test('a peer that takes packets of at most 10 ms gets no longer ones', async t => {
    const near = await dial(world)
    const far = await world.target.incoming(CALLED)
    const sdp = far.sdp.bind(far)
    far.sdp = direction => `${sdp(direction)}a=maxptime:10\r\n`
    const acknowledged = far.answer()
    await near.answered()
    await acknowledged
    await talk(near, far)
    const spoken = far.rtp.received.filter(({ payload_type }) => payload_type === 0)
    t.same([...new Set(spoken.map(({ payload }) => payload.length))], [80])
    near.hangUp()
    await far.over()
  })

  t.test('who sends to the port of a call while the peer is silent is not heard, and hears nothing', async t => {
    const near = await dial(world)
    const far = await world.target.incoming(CALLED)
    far.sdpAddress = '10.255.0.9'
    const acknowledged = far.answer()
    await near.answered()
    await acknowledged
    await talk(near, far)
    const stranger = await openRtpPeer({ address: '127.0.0.29', codec: 'PCMU' })
    t.teardown(() => stranger.close())
    stranger.sendTo(...far.rtp.target)
    await stranger.send(tone(1700, 600))
    await talk(near, far)
    t.equal(stranger.received.length, 0, 'the stranger hears nothing')
    t.ok(
      near.rtp.received.every((_, index) => near.rtp.level(1700, index + 1) < -40),
      'and is not heard',
    )
    near.hangUp()
    await far.over()
  })

  t.test('quality: writes a row each ten seconds, with the peer’s own reports, and detects one-way audio', async t => {
    const { near, far } = await connected(world)
    const call = await lastCall(w)
    const oneWayCalls = async (trunk_id: string | null): Promise<number> =>
      (await w.manage('GET', `/trunks/${trunk_id}/diagnostics?window=1h`)).body.media.one_way_calls
    const before = await oneWayCalls(call.trunk_id)
    const pair = { port: await freeRow(2), address: near.rtp.address }
    const listening = await openRtpPeer({ ...pair, codec: 'PCMU', event_payload_type: 101 })
    t.teardown(() => listening.close())
    await near.moveTo(listening)
    // The caller only listens; the called party talks.
    const stop = far.hum(800)
    await near.hears(800)
    const [heard] = near.rtp.received
    const rtcp = createSocket('udp4')
    t.teardown(() => rtcp.close())
    // The port of its reports according to its SDP (RFC 3550 §11). Reports from other ports are ignored.
    rtcp.bind(near.rtp.port + 1, near.rtp.address)
    await once(rtcp, 'listening')
    const report = { ssrc: near.rtp.ssrc, about: heard?.ssrc ?? 0, lost: 7, jitter: 240, mos_lq: 41 }
    rtcp.send(reportWithVoipMetrics(report), (heard?.from_port ?? 0) + 1, '127.0.0.1')
    // Rows from before the talk and the report may stand before these.
    const { silent, talking } = await until('a row of each leg', async () => {
      const found = (await mediaQualityOf(w.state.db, call.sid)).map(row => JSON.parse(row.stats))
      const silent = found.findLast(row => row.remote_mos !== null)
      const talking = found.findLast(row => row.packets_received > 0)
      return silent && talking && { silent, talking }
    })
    t.match(silent, {
      packets_received: 0,
      remote_mos: 4.1,
      remote_packets_lost: 7,
      remote_jitter_ms: 30,
      mos: null,
      codec: 'PCMU',
    })
    t.match(talking, { remote_mos: null, packets_lost: 0, packets_sent: 0 })
    t.ok(talking.mos > leastMos(talking), `MOS ${talking.mos} at ${talking.jitter_mean_ms} ms of jitter`)
    await near.rtp.until(received => received.length > 250, PATIENCE_MS, 'five seconds of one direction')
    await stop()
    near.hangUp()
    await far.over()
    const cdr = await until('the CDR', () =>
      w.state.db.selectFrom('cdr').selectAll().where('call_sid', '=', call.sid).executeTakeFirst(),
    )
    const media = JSON.parse(cdr.media ?? '{}')
    t.match(media, { a: { packets_received: 0 }, mode: 'relay' })
    t.ok(media.b.packets_received > 250 && media.b.mos > leastMos(media.b), 'the summary of the talking leg')
    const counted = await until('the call is counted', async () => {
      const after = await oneWayCalls(call.trunk_id)
      return after > before ? after : undefined
    })
    t.equal(counted, before + 1, 'as a call of one direction')
  })

  t.test('figures: a call of two seconds has those of each whole leg, as counted on the wire', async t => {
    const { near, far } = await connected(world)
    const call = await lastCall(w)
    const before = await packetsOfTrunk(w, call.trunk_id)
    await talk(near, far)
    await talk(near, far)
    await Promise.all([passed(near, far), passed(far, near)])
    const wire = { near: near.rtp.sent, far: far.rtp.sent }
    near.hangUp()
    await far.over()
    const { body } = await until('the final figures', async () => {
      const read = await w.manage('GET', `/calls/${call.sid}`)
      return read.body.ended_at === null ? undefined : read
    })
    const [caller, called] = body.media.legs
    t.match([caller.side, called.side], ['caller', 'called'])
    t.match(caller, { complete: true, codec: 'PCMU', packets_lost: 0, packets_unsent: 0 })
    t.match(caller.codecs, [{ codec: 'PCMU' }])
    const counts = { of: [caller.packets_received, called.packets_received], wire: [wire.near, wire.far] }
    for (const at of [0, 1])
      t.ok(Math.abs((counts.of[at] ?? 0) - (counts.wire[at] ?? 0)) <= 1, `received as sent: ${JSON.stringify(counts)}`)
    await Promise.all([near.rtp.packets(caller.packets_sent), far.rtp.packets(called.packets_sent)])
    t.equal(caller.packets_sent, near.rtp.received.length, 'sent as received by the caller')
    t.equal(called.packets_sent, far.rtp.received.length, 'sent as received by the called')
    t.equal(caller.octets_received, 160 * caller.packets_received)
    const { totals } = body.media
    t.equal(totals.packets_received, caller.packets_received + called.packets_received)
    t.equal((await packetsOfTrunk(w, call.trunk_id)) - before, totals.packets_received, 'the trunk counts the same')
    const { body: media } = await w.manage('GET', `/calls/${call.sid}/media`)
    const sorted = (figures: { leg_id: string }[]) => figures.toSorted((a, b) => a.leg_id.localeCompare(b.leg_id))
    t.strictSame(
      sorted(media.legs.map((leg: { figures: { leg_id: string } }) => leg.figures)),
      sorted(body.media.legs),
      'short calls have no sample, and yet their figures',
    )
    t.strictSame(media.totals, totals)
  })

  t.test('a carrier’s call to a trunk’s number: both hear each other, and its X- headers are removed', async t => {
    const carrier = await openSoftphone(t, '127.0.0.28')
    const own = w.numbers[6] ?? ''
    const { trunk_id } = await w.state.db
      .selectFrom('trunk_source')
      .select('trunk_id')
      .where('cidr', '=', `${world.peer.address}/32`)
      .executeTakeFirstOrThrow()
    await carrierToTrunk(w, carrier.address, own, trunk_id)
    const before = await packetsOfTrunk(w, trunk_id)
    const began = Date.now()
    const near = await carrier.dial(`sip:${own}@${w.sip.host}:${w.sip.port}`, {
      from: '+2348030001111',
      headers: { 'X-Billing': 'gold' },
    })
    const far = await world.target.incoming(own)
    t.equal(far.header('x-billing'), null)
    t.match(far.header('p-asserted-identity'), /\+2348030001111@/)
    t.match(far.header('x-strowger-callsid'), /^CA[0-9a-f]{32}$/)
    const [near_wire, far_wire] = [capture(near.rtp), capture(far.rtp)]
    const acknowledged = far.answer()
    await near.answered()
    await acknowledged
    await talk(near, far)
    await Promise.all([passed(near, far), passed(far, near)])
    far.hangUp()
    t.equal(await near.over(), 'peer')
    // An earlier row is of a call that was placed again, because the platform was too busy to decide.
    const row = await w.state.db
      .selectFrom('call')
      .selectAll()
      .where('to_number', '=', own)
      .orderBy('position', 'desc')
      .executeTakeFirstOrThrow()
    t.match(row, { origin: 'carrier', direction: 'inbound', trunk_id })
    const { body } = await until('the final figures', async () => {
      const read = await w.manage('GET', `/calls/${row.sid}`)
      return read.body.ended_at === null ? undefined : read
    })
    // The legs stand in the order of their end, which may be the same millisecond.
    const [caller, called] = ['caller', 'called'].map(side =>
      body.media.legs.find((leg: { side: string }) => leg.side === side),
    )
    const of_carrier = await carrierMedia(w, began)
    const { packets_received, packets_sent, octets_received, octets_sent, packets_lost, mos } = caller
    t.match(
      of_carrier,
      {
        ...{ legs: 1, packets_received, packets_sent, octets_received, octets_sent, packets_lost },
        mos: mos === null ? null : Math.round(mos * 100) / 100,
      },
      "the carrier's sums are those of its leg",
    )
    const { totals } = body.media
    t.equal(totals.packets_received, of_carrier.packets_received + called.packets_received)
    t.equal((await packetsOfTrunk(w, trunk_id)) - before, totals.packets_received, 'the trunk counts both legs')
    const counted = { near: await near_wire.counted(), far: await far_wire.counted() }
    for (const [leg, wire] of [
      [caller, counted.near],
      [called, counted.far],
    ])
      for (const [figure, count] of [
        [leg.packets_received, wire.sent],
        [leg.packets_sent, wire.received],
      ])
        t.ok(Math.abs(figure - count) <= 1, `as tshark counts: ${figure} of ${count}, ${JSON.stringify(counted)}`)
    t.ok(counted.near.sent > 10 && counted.far.sent > 10)
  })

  t.test('no call, dialog, port or lease remains', t => nothingLeft(t, w))
})
