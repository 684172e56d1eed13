import { openAgent, place } from '../support/agents.ts'
import { DIALOG } from '../support/b2bua-stories/dialog.ts'
import { ENDING } from '../support/b2bua-stories/ending.ts'
import { HEADERS } from '../support/b2bua-stories/headers.ts'
import { SETUP } from '../support/b2bua-stories/setup.ts'
import { play } from '../support/b2bua-stories/story.ts'
import { addTrunk, nothingLeft } from '../support/b2bua-world.ts'
import { wasDecided } from '../support/busy.ts'
import { embeddedOnly } from '../support/edges.ts'
import t from '../support/harness/index.ts'
import { sharedWorld } from '../support/shared-world.ts'
import { until } from '../support/wait.ts'
import { webServer } from '../support/web.ts'

/** The caller's response and the call's status, unless they are the same code and `failed`. */
const OTHERWISE: Readonly<Record<number, readonly [heard: number, status: string]>> = {
  302: [480, 'failed'],
  401: [403, 'failed'],
  407: [403, 'failed'],
  408: [408, 'no-answer'],
  480: [480, 'no-answer'],
  486: [486, 'busy'],
  600: [600, 'busy'],
  603: [603, 'busy'],
}
const CODES = [302, ...Array.from({ length: 300 }, (_, index) => 400 + index)]
const outcomeOf = (code: number): readonly [number, string] => OTHERWISE[code] ?? [code, 'failed']
/** Concurrent calls. A busy machine still admits so many within the limit of an admission. */
const TOGETHER = 8

/** The last three digits of the called number. */
const codeOf = (uri = ''): number => Number(/(\d{3})@/.exec(uri)?.[1])

t.test('stories of the B2BUA', async t => {
  const w = await sharedWorld(t)
  await t.test('each story runs over each of its transports', { jobs: 6 }, async t => {
    // The longest stories run first.
    for (const story of [...ENDING, ...SETUP, ...DIALOG, ...HEADERS])
      for (const transport of story.only ? [story.only] : (['udp', 'tcp'] as const))
        void t.test(`${story.title} (${transport})`, { buffered: true, skip: embeddedOnly(story.title) }, t =>
          play(t, w, story, transport),
        )
  })
  await t.test('for every final code of a target, the caller, the call, its CDR and its callback agree', async t => {
    const target = await openAgent(t, { ip: '127.0.0.64', take: call => call.reject(codeOf(call.invite?.uri)) })
    const uri = `sip:${target.ip}:${target.port}`
    const trunk_id = await addTrunk(w, [{ sip_uri: uri, transport: 'udp', priority: 1, weight: 1 }], {
      sources: ['127.0.0.63/32'],
      limits: { concurrency: 1000, cps: 1000, max_call_duration_seconds: 60 },
    })
    const peer = await openAgent(t, { ip: '127.0.0.63' })
    const call = async (said: number) => {
      const [heard, status] = outcomeOf(said)
      const called = `+2348030005${said}`
      const answer = await place(peer, `sip:${called}@${w.sip.host}`, { to: w.sip, caller: w.numbers[1] ?? '' })
      const cdr = await until(`the CDR of ${said}`, async () => {
        const found = await w.state.db
          .selectFrom('cdr')
          .innerJoin('call', 'call.sid', 'cdr.call_sid')
          .select(['cdr.status', 'cdr.sip_code', 'call.status as call_status', 'call.sip_code as call_code'])
          .select('call.reason')
          .where('call.to_number', '=', called)
          .execute()
        return found.find(wasDecided)
      })
      const told = [answer.status, cdr.sip_code, cdr.status, cdr.call_code, cdr.call_status]
      if (`${told}` !== `${[heard, heard, status, heard, status]}`) t.fail(`${said}: ${told}`)
    }
    for (let at = 0; at < CODES.length; at += TOGETHER) await Promise.all(CODES.slice(at, at + TOGETHER).map(call))
    t.equal(target.invites.length, CODES.length + 1, 'one INVITE each, and one without a timer after the 422')

    const web = await webServer(t, { '/status': '' })
    const From = w.numbers[2] ?? ''
    await w.routeToTrunk(From, trunk_id)
    const codes = [404, 408, 480, 486, 488, 503, 600, 603]
    for (const code of codes) {
      const To = `+2348031005${code}`
      const form = { From, To, InlineMarkup: '<Response/>', StatusCallback: `${web.url}/status` }
      t.equal((await w.voice('POST', '/Calls.json', form)).status, 201)
    }
    await until('every callback', () => web.requests.length >= codes.length)
    const callbacks = web.requests.map(({ fields }) =>
      ['To', 'SipResponseCode', 'CallStatus'].map(name => fields.get(name)),
    )
    t.same(
      callbacks.sort(),
      codes.map(code => [`+2348031005${code}`, ...outcomeOf(code).map(String)]),
      'the callback says the same',
    )
  })
  await t.test('no call, dialog, port or lease remains', t => nothingLeft(t, w))
})
