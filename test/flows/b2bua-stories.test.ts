import t from 'tap'
import { openAgent, place } from '../support/agents.ts'
import { DIALOG } from '../support/b2bua-stories/dialog.ts'
import { ENDING } from '../support/b2bua-stories/ending.ts'
import { HEADERS } from '../support/b2bua-stories/headers.ts'
import { SETUP } from '../support/b2bua-stories/setup.ts'
import { play } from '../support/b2bua-stories/story.ts'
import { addTrunk, nothingLeft } from '../support/b2bua-world.ts'
import { freeBlock } from '../support/ports.ts'
import { until } from '../support/wait.ts'
import { world } from '../support/world.ts'

/** Final codes of RFC 3261 and its extensions that pass as they are, and the call has failed. */
const FINAL_CODES = [
  '400 402 403 404 405 406 410 412 413 414 415 416 417 420 421 422 423 424 428 429 430 433 436 437 438 439 440',
  '469 470 481 482 483 484 485 487 488 489 491 493 494 500 501 502 503 499 504 505 513 555 580 599 604 606 607 608',
].join(' ')
const CODES: readonly (readonly [number, number, string])[] = [
  ...FINAL_CODES.split(' ').map(code => [Number(code), Number(code), 'failed'] as const),
  [302, 480, 'failed'],
  [401, 403, 'failed'],
  [407, 403, 'failed'],
  [408, 408, 'no-answer'],
  [480, 480, 'no-answer'],
  [486, 486, 'busy'],
  [600, 600, 'busy'],
  [603, 603, 'busy'],
]

/** The last three digits of the called number. */
const codeOf = (uri = ''): number => Number(/(\d{3})@/.exec(uri)?.[1])

t.test('stories of the B2BUA', async t => {
  // A port rests for 30 s: there are more legs here than the ports of a small block.
  const { first, last } = await freeBlock(600)
  const w = await world(t, { STROWGER_SANDBOX: 'off', STROWGER_RTP_PORTS: `${first}-${last}` })
  await t.test('each over its transports', { jobs: 6 }, async t => {
    // The longest come first.
    for (const story of [...ENDING, ...SETUP, ...DIALOG, ...HEADERS])
      for (const transport of story.only ? [story.only] : (['udp', 'tcp'] as const))
        void t.test(`${story.title} (${transport})`, { buffered: true }, t => play(t, w, story, transport))
  })
  await t.test('every final code of a target: what the caller hears, the call and its CDR say the same', async t => {
    const target = await openAgent(t, { ip: '127.0.0.64', take: call => call.reject(codeOf(call.invite?.uri)) })
    const uri = `sip:${target.ip}:${target.port}`
    await addTrunk(w, [{ sip_uri: uri, transport: 'udp', priority: 1, weight: 1 }], {
      sources: ['127.0.0.63/32'],
      limits: { concurrency: 100, cps: 100, max_call_duration_seconds: 60 },
    })
    const peer = await openAgent(t, { ip: '127.0.0.63' })
    const calls = CODES.map(async ([said, heard, status]) => {
      const called = `+2348030005${said}`
      const answer = await place(peer, `sip:${called}@${w.sip.host}`, { to: w.sip, caller: w.numbers[1] ?? '' })
      const cdr = await until(`the CDR of ${said}`, () =>
        w.state.db
          .selectFrom('cdr')
          .innerJoin('call', 'call.sid', 'cdr.call_sid')
          .select(['cdr.status', 'cdr.sip_code', 'call.status as call_status', 'call.sip_code as call_code'])
          .where('call.to_number', '=', called)
          .executeTakeFirst(),
      )
      t.same(
        [answer.status, cdr.sip_code, cdr.status, cdr.call_code, cdr.call_status],
        [heard, heard, status, heard, status],
        `${said}`,
      )
    })
    await Promise.all(calls)
    t.equal(target.invites.length, CODES.length, 'one INVITE each')
  })
  await t.test('afterwards nothing is left', t => nothingLeft(t, w))
})
