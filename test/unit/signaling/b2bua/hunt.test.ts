import { setImmediate as turn } from 'node:timers/promises'
import pino from 'pino'
import type { CallContext } from '../../../../signaling/b2bua/context.ts'
import { Hunt, type HuntHop, type HuntListener } from '../../../../signaling/b2bua/hunt.ts'
import type {
  Dialog,
  InviteOptions,
  InviteProgress,
  InviteResult,
  SipResponse,
} from '../../../../signaling/drachtio/types.ts'
import { ManualClock } from '../../../fuzz/edge/manual-clock.ts'
import t from '../../../support/harness/index.ts'
import { AGREED, sessionWith } from '../../../support/one-leg.ts'

// Silent targets, with a SIP server whose own timeout is 32 s per target.

const SESSION = await sessionWith(() => AGREED)

const response = (status: number): SipResponse => ({
  ...{ call_id: 'c', headers: {}, header: () => null, body: '', status, reason: '' },
  content: () => ({ sdp: '', parts: [], refused: null, notes: [] }),
  source: { address: '198.51.100.7', port: 5060, transport: 'udp' },
})

/** Starts a hunt over targets of these names, and records what they and the caller see. */
function hunt(
  names: readonly (string | Partial<HuntHop>)[],
  limits_silence = false,
  second: readonly string[] | 'taken' | null = null,
) {
  const auths: (string | undefined)[] = []
  const headers: InviteOptions['headers'][] = []
  const seen: string[] = []
  const clock = new ManualClock()
  const invites = new Map<string, { progress: InviteProgress; settle: (result: InviteResult) => void }>()
  const sip = {
    limits_silence,
    invite({ uri, auth, headers: given }: InviteOptions, progress: InviteProgress) {
      seen.push(`INVITE ${uri}`)
      auths.push(auth?.username)
      headers.push(given)
      let over = false
      const result = new Promise<InviteResult>(resolve => {
        const settle = (how: InviteResult): void => {
          over = true
          resolve(how)
        }
        invites.set(uri, { progress, settle })
      })
      progress.sent?.({ call_id: uri, source: response(200).source })
      return { result, cancel: () => void (over || seen.push(`CANCEL ${uri}`)) }
    },
  }
  const nothing = (): void => undefined
  const peer_addresses = {
    find: async ({ uri }: HuntHop) => ({ kind: 'found', addresses: [{ host: uri, proxy: uri }] }),
    ...{ answered: nothing, failedAt: nothing },
  }
  const ctx = {
    ...{ clock, sip, peer_addresses, node_id: 'node', snapshot: () => ({ trunks: new Map() }) },
    health: { attempted: nothing },
    metrics: { pdd: { observe: nothing }, attempts: { inc: nothing } },
  } as unknown as CallContext
  const listener = {
    ...{ ended: nothing, attempt: nothing, digit: nothing, refer: nothing, notify: nothing, held: nothing },
    ...{ measured: nothing, message: nothing, media: nothing, early: async () => false },
    ringing: () => void seen.push('ringing'),
    answered: (_leg, _response, hop) => void seen.push(`answered by ${hop.uri}`),
    failed: ({ code }) => void seen.push(`failed ${code}`),
  } as HuntListener
  const hopsTo = (uris: typeof names) =>
    uris.map(name => {
      const over = typeof name === 'string' ? { uri: name } : name
      return { target: over.uri, transport: 'udp', headers: {}, policy: {}, redirects: [], ...over }
    }) as unknown as HuntHop[]
  const next = second && (async () => (second === 'taken' ? second : hopsTo(second)))
  const begun = new Hunt(ctx, {
    ...{ call_sid: 'CA', hops: hopsTo(names), session: SESSION, listener, keep: nothing, ring_ms: 120_000, next },
    ...{ log: pino({ level: 'silent' }), prefer: null },
  })
  begun.start()
  const of = (uri: string) => {
    const invite = invites.get(uri)
    if (!invite) throw new Error(`no INVITE to ${uri}`)
    return invite
  }
  return { seen, clock, of, auths, headers }
}

/** Lets pending promises settle. */
const rest = async (): Promise<void> => {
  for (let turns = 0; turns < 10; turns++) await turn()
}

t.test('a hunt cancels a silent target after 5 s, but leaves the last one to the server timeout', async t => {
  const { seen, clock, of } = hunt(['a', 'b'])
  await rest()
  clock.advance(4999)
  await rest()
  t.same(seen, ['INVITE a'])
  clock.advance(1)
  await rest()
  t.same(seen.splice(0), ['INVITE a', 'CANCEL a', 'INVITE b'])
  clock.advance(31_000)
  await rest()
  t.same(seen, [], 'the last target is not cancelled')
  const made_up = { ...response(408), source: { address: '', port: 0, transport: 'udp' } } as const
  of('b').settle({ kind: 'refused', response: made_up })
  await rest()
  t.same(seen, ['failed 408'], 'the caller has a final answer within 64 s')
})

const refusedBy = (status: number): InviteResult => ({ kind: 'refused', response: response(status) })

t.test('a second route follows when no target of the first could take the call, and only then', async t => {
  const failing = hunt(['a'], false, ['b', 'c'])
  await rest()
  failing.clock.advance(5000)
  await rest()
  t.same(failing.seen.splice(0), ['INVITE a', 'CANCEL a', 'INVITE b'], 'a silent last target is given up for it')
  failing.of('b').settle(refusedBy(500))
  await rest()
  failing.of('c').settle(refusedBy(503))
  await rest()
  t.same(failing.seen, ['INVITE c', 'failed 503'], 'it is asked once')

  const busy = hunt(['a'], false, ['b'])
  await rest()
  busy.of('a').settle(refusedBy(486))
  await rest()
  t.same(busy.seen, ['INVITE a', 'failed 486'])

  const without_targets = hunt([], false, ['b'])
  await rest()
  t.same(without_targets.seen, ['INVITE b'])

  const taken = hunt(['a'], false, 'taken')
  await rest()
  taken.of('a').settle(refusedBy(503))
  await rest()
  taken.clock.advance(120_000)
  await rest()
  t.same(taken.seen, ['INVITE a'], 'the hunt is over and tells nothing')

  const leading_nowhere = hunt(['a'], false, [])
  await rest()
  leading_nowhere.of('a').settle(refusedBy(503))
  await rest()
  t.same(leading_nowhere.seen, ['INVITE a', 'failed 503'])
})

const moved = (...contacts: readonly string[]): InviteResult => {
  const contact = contacts.map(uri => `<${uri}>`).join(', ')
  const header = (name: string): string | null => (name === 'contact' ? contact : null)
  return { kind: 'refused', response: { ...response(302), header } }
}
const hosts = (...names: readonly string[]): HuntHop['redirects'] =>
  names.map(host => ({ host, tls: { mode: 'off' }, auth: { username: host, password: 'secret' } }))

t.test('a redirect leads only to a host that the target allows, with the credentials of that host', async t => {
  const { seen, of, auths, headers } = hunt([
    {
      ...{ uri: 'sip:1@a', redirects: hosts('a', 'b'), auth: { username: 'a', password: 'x' }, headers: { From: '9' } },
      diverted: uri => ({ Diversion: `1 to ${uri}` }),
    },
  ])
  await rest()
  of('sip:1@a').settle(moved('sip:1@evil', 'sip:2@B:5070'))
  await rest()
  t.same(seen, ['INVITE sip:1@a', 'INVITE sip:2@B:5070'])
  t.same(auths, ['a', 'b'], 'the password of one host is not tried at another')
  t.match(headers, [{ From: '9' }, { From: '9', Diversion: '1 to sip:2@B:5070' }], 'the second one says who diverted')
  t.notOk(headers[0]?.['Diversion'])
  of('sip:2@B:5070').settle(moved('sip:1@a'))
  await rest()
  t.equal(seen.at(-1), 'failed 480', 'a second redirect is not followed')
})

t.test('a redirect of a target that allows none is a failure', async t => {
  const { seen, of } = hunt([{ uri: 'sip:1@a', redirects: [], auth: { username: 'a', password: 'x' } }])
  await rest()
  of('sip:1@a').settle(moved('sip:2@a'))
  await rest()
  t.same(seen, ['INVITE sip:1@a', 'failed 480'])
})

t.test('a target that has rung may stay silent longer than 5 s', async t => {
  const { seen, clock, of } = hunt(['a', 'b'])
  await rest()
  clock.advance(4000)
  of('a').progress.provisional?.(response(180))
  await rest()
  clock.advance(60_000)
  await rest()
  t.same(seen, ['INVITE a', 'ringing'])
})

t.test('an abandoned target that answers late is hung up, and the call goes to the next target', async t => {
  const { seen, clock, of } = hunt(['a', 'b'])
  await rest()
  clock.advance(5000)
  await rest()
  seen.splice(0)
  const dialog = (of_: string) => ({ call_id: of_, bye: async () => void seen.push(`BYE ${of_}`) }) as unknown as Dialog
  const content = () => ({ sdp: 'v=0 theirs', parts: [], refused: null, notes: [] })
  const ok = { ...response(200), content }
  of('a').settle({ kind: 'answered', dialog: dialog('a'), response: ok })
  await rest()
  t.same(seen.splice(0), ['BYE a'])
  of('b').settle({ kind: 'answered', dialog: dialog('b'), response: ok })
  await rest()
  t.same(seen, ['answered by b'])
})

t.test('a hunt does not limit silence when the SIP server does', async t => {
  const { seen, clock } = hunt(['a', 'b'], true)
  await rest()
  clock.advance(30_000)
  await rest()
  t.same(seen, ['INVITE a'])
})
