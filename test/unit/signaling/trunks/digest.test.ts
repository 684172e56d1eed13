import {
  digestHa1,
  machineNonces,
  type Nonces,
  sharedNonceKey,
  sharedNonces,
} from '../../../../core/runtime/secrets.ts'
import { claimNonce } from '../../../../core/state/nodes/nonce-claims.ts'
import { DigestAuthenticator, type DigestOutcome } from '../../../../signaling/trunks/digest.ts'
import { EMPTY_SNAPSHOT, type Snapshot } from '../../../../signaling/trunks/snapshot.ts'
import { admissionWorld, NOW_MS } from '../../../support/admission-world.ts'
import t from '../../../support/harness/index.ts'
import { digestAnswer } from '../../../support/phone.ts'

const URI = 'sip:+2348030000001@pbx.example'
const secret = { username: 'pbx', realm: 'example.org', password: 'hello' }

/** A node that authenticates. Without `claim`, its machine is the only one. */
function desk({
  nonces = machineNonces(''),
  claim = () => Promise.reject(new Error('a machine alone claims nothing')),
  start_ms = 1_000_000,
}: {
  nonces?: Nonces
  claim?: (nonce: string) => Promise<boolean>
  start_ms?: number
} = {}) {
  let now_ms = start_ms
  const credential = {
    id: 'dig_1',
    trunk_id: 'trk_1',
    realm: secret.realm,
    username: secret.username,
    ha1_md5: digestHa1('md5', secret.username, secret.realm, secret.password),
    ha1_sha256: digestHa1('sha256', secret.username, secret.realm, secret.password),
    valid_until_ms: null as number | null,
  }
  let snapshot: Snapshot = { ...EMPTY_SNAPSHOT, credentials: new Map([['pbx', [credential]]]) }
  const clock = {
    now: () => now_ms,
    monotonic_ms: () => now_ms,
    after: () => ({ cancel: () => undefined }),
    every: () => ({ cancel: () => undefined }),
  }
  const proofs: string[] = []
  const guesses: string[] = []
  const authenticator = new DigestAuthenticator({
    ...{ clock, realm: 'fallback.example', snapshot: () => snapshot },
    ...{ nonces, claim },
    proved: (trunk_id, address) => proofs.push(`${trunk_id} ${address}`),
    guessed: (trunk_id, address) => guesses.push(`${trunk_id} ${address}`),
  })
  const ask = (
    authorization: string | null,
    uri = URI,
    address = '10.0.0.1',
    from = '<sip:pbx@10.0.0.1>;tag=1',
    flow: { port?: number; transport?: 'udp' | 'tcp' } = {},
  ): DigestOutcome | Promise<DigestOutcome> =>
    authenticator.check({
      method: 'INVITE',
      uri,
      call_id: 'c',
      headers: {},
      header: name => ({ authorization, from })[name] ?? null,
      body: '',
      content: () => ({ sdp: '', parts: [], refused: null, notes: [] }),
      source: { address, port: 5060, transport: 'udp', ...flow },
    })
  /** The outcome at once: nothing was claimed. */
  const check = (...asked: Parameters<typeof ask>): DigestOutcome => {
    const outcome = ask(...asked)
    if (outcome instanceof Promise) throw new Error('the outcome waits for a claim')
    return outcome
  }
  const challenge = (address?: string): string => {
    const outcome = check(null, URI, address)
    if (outcome.kind !== 'challenge') throw new Error(outcome.kind)
    return /nonce="([^"]+)"/.exec(outcome.challenges[0] ?? '')?.[1] ?? ''
  }
  const answer = (over: Partial<Parameters<typeof digestAnswer>[0]> = {}): string =>
    digestAnswer({ algorithm: 'SHA-256', ...secret, nonce: '', nc: '00000001', uri: URI, ...over })
  return {
    check,
    ask,
    proofs,
    guesses,
    challenge,
    answer,
    later: (ms: number) => {
      now_ms += ms
    },
    retire: () => {
      snapshot = { ...snapshot, credentials: new Map([['pbx', [{ ...credential, valid_until_ms: now_ms - 1 }]]]) }
    },
    empty: () => {
      snapshot = EMPTY_SNAPSHOT
    },
  }
}

t.test('both algorithms authenticate, and each nonce count is accepted once', async t => {
  const d = desk()
  const nonce = d.challenge()
  t.match(d.check(d.answer({ nonce })), { kind: 'authenticated', trunk_id: 'trk_1' })
  t.match(d.check(d.answer({ nonce })), { kind: 'challenge', challenges: [/stale=true/] }, 'a repeated count')
  t.match(d.check(d.answer({ nonce, nc: '00000002', algorithm: 'MD5' })), { kind: 'authenticated' })
  t.match(d.check(d.answer({ nonce, nc: '00000001' })), { kind: 'challenge' }, 'a lower count')
  t.same(d.proofs, ['trk_1 10.0.0.1', 'trk_1 10.0.0.1'], 'only proved passwords are reported')
})

t.test('a wrong user, password, realm, URI, nonce or count gets the same kind of response', async t => {
  const d = desk()
  const nonce = d.challenge()
  for (const over of [
    { username: 'other' },
    { password: 'wrong' },
    { realm: 'other' },
    { uri: 'sip:+234900@pbx.example' },
    { nonce: 'made-up' },
    { nonce: `${nonce}x` },
    { nc: 'zz' },
  ]) {
    const outcome = d.check(d.answer({ nonce, ...over }))
    t.equal(outcome.kind, 'challenge', JSON.stringify(over))
  }
})

t.test('a client that leaves a challenge with two algorithms unanswered is then offered only MD5', async t => {
  const d = desk()
  const algorithms = (from?: string, authorization: string | null = null): string[] => {
    const outcome = d.check(authorization, URI, '10.0.0.1', from)
    const challenges = outcome.kind === 'challenge' ? outcome.challenges : []
    return challenges.map(text => /algorithm=([^,\s]+)/.exec(text)?.[1] ?? '')
  }
  t.same(algorithms(), ['SHA-256', 'MD5'])
  d.later(2000)
  t.same(algorithms(), ['SHA-256', 'MD5'], 'a second request shortly after is no evidence')
  const able = d.answer({ nonce: d.challenge() })
  t.equal(d.check(able).kind, 'authenticated')
  d.later(60_000)
  t.same(algorithms(), ['SHA-256', 'MD5'], 'a client that has answered supports both')
  d.later(60_000)
  t.same(algorithms(), ['MD5'], 'a client that returns without an answer supports only MD5')
  t.same(
    algorithms('<sip:other@10.0.0.1>;tag=2'),
    ['SHA-256', 'MD5'],
    'another client behind the same address still gets both',
  )
  const old = d.answer({ nonce: d.challenge(), algorithm: 'MD5' })
  t.equal(d.check(old).kind, 'authenticated')
  d.later(3_600_000)
  t.same(algorithms(undefined, old), ['MD5'], 'the client is remembered, also for a stale nonce')
})

t.test('an old nonce is stale, and a retired credential is rejected', async t => {
  const d = desk()
  const nonce = d.challenge()
  d.later(5 * 60_000 + 1)
  t.match(d.check(d.answer({ nonce })), { kind: 'challenge', challenges: [/stale=true/] })
  d.retire()
  t.equal(d.check(d.answer({ nonce: d.challenge() })).kind, 'challenge')
})

t.test('an address that guesses is refused for a minute, and other addresses are not', async t => {
  const d = desk()
  for (let guess = 0; guess < 10; guess++) d.check(d.answer({ nonce: d.challenge(), password: `${guess}` }))
  t.equal(d.check(d.answer({ nonce: d.challenge('10.0.0.2') })).kind, 'refused')
  t.equal(d.check(d.answer({ nonce: d.challenge('10.0.0.2') }), URI, '10.0.0.2').kind, 'authenticated')
  d.later(61_000)
  t.equal(d.check(d.answer({ nonce: d.challenge() })).kind, 'authenticated')
})

t.test('a stranger who guesses the password of a trunk is told once, by the trunk that it names', async t => {
  const d = desk()
  const guess = (address: string, username = secret.username) =>
    d.check(d.answer({ nonce: d.challenge(address), password: 'wrong', username }), URI, address)
  for (let count = 0; count < 4; count++) guess('10.0.0.3')
  t.same(d.guesses, [], 'whoever mistypes is no stranger yet')
  for (let count = 0; count < 4; count++) guess('10.0.0.3')
  t.same(d.guesses, ['trk_1 10.0.0.3'])
  for (let count = 0; count < 9; count++) guess('10.0.0.4', 'nobody')
  t.same(d.guesses, ['trk_1 10.0.0.3'], 'a user whom nobody has is of no trunk')
})

t.test('only failures with a nonce that we issued to that address and transport count', async t => {
  const d = desk()
  const tcp = { transport: 'tcp', port: 40_000 } as const
  const over = (authorization: string | null, flow: { port?: number; transport?: 'udp' | 'tcp' }) =>
    d.check(authorization, URI, '10.0.0.1', undefined, flow)
  const nonceOf = (outcome: DigestOutcome): string =>
    /nonce="([^"]+)"/.exec(outcome.kind === 'challenge' ? (outcome.challenges[0] ?? '') : '')?.[1] ?? ''
  const registered = (): DigestOutcome => over(d.answer({ nonce: nonceOf(over(null, tcp)) }), tcp)
  t.equal(registered().kind, 'authenticated')
  const foreign = d.challenge('10.0.0.9')
  for (let junk = 0; junk < 20; junk++) {
    over(d.answer({ nonce: 'junk', password: `${junk}` }), {})
    over(d.answer({ nonce: foreign, password: `${junk}` }), {})
    over(d.answer({ nonce: nonceOf(over(null, tcp)), password: `${junk}` }), {})
  }
  t.equal(
    d.check(d.answer({ nonce: d.challenge() })).kind,
    'authenticated',
    'an invalid nonce from its address does not count',
  )
  for (let guess = 0; guess < 10; guess++)
    over(d.answer({ nonce: nonceOf(over(null, { port: 9 })), password: `${guess}` }), { port: 9 })
  t.equal(over(null, { port: 9 }).kind, 'refused', 'real guesses count')
  t.equal(registered().kind, 'authenticated', 'another transport is not affected')
  t.equal(
    d.check(d.answer({ nonce: d.challenge() })).kind,
    'authenticated',
    'a flow that proved a password is not affected',
  )
})

t.test('without any credential a request is refused, not challenged', async t => {
  const d = desk()
  d.empty()
  t.same(d.check(null), { kind: 'refused' })
})

t.test('a node that starts again accepts no nonce of before', async t => {
  const nonces = machineNonces('one secret')
  const before = desk({ nonces })
  const answer = before.answer({ nonce: before.challenge() })
  t.equal(before.check(answer).kind, 'authenticated')
  const after = desk({ nonces, start_ms: 1_000_100 })
  t.match(after.check(answer), { kind: 'challenge', challenges: [/stale=true/] }, 'its predecessor has counted it')
  t.equal(after.check(after.answer({ nonce: after.challenge() })).kind, 'authenticated')
})

t.test('machines accept a nonce of each other once, and its counts where it was used first', async t => {
  const w = await admissionWorld()
  t.teardown(() => w.close())
  const nonces = sharedNonces(sharedNonceKey(Buffer.alloc(32, 1)))
  const claim = (nonce: string): Promise<boolean> => claimNonce(w.state.db, nonce, NOW_MS)
  const machine = (start_ms = NOW_MS) => desk({ nonces, claim, start_ms })
  const [a, b] = [machine(), machine()]
  const stale = { kind: 'challenge', challenges: [/stale=true/] }
  const kinds = async (...outcomes: ReturnType<typeof a.ask>[]): Promise<string[]> =>
    (await Promise.all(outcomes)).map(({ kind }) => kind).sort()

  const nonce = a.challenge()
  const first = a.answer({ nonce })
  t.match(await b.ask(first), { kind: 'authenticated', trunk_id: 'trk_1' }, 'challenged by one, answered at the other')
  t.match(await a.ask(first), stale, 'a replay at the machine that made the nonce')
  t.match(b.check(first), stale, 'a replay at the same machine')
  t.match(b.check(b.answer({ nonce, nc: '00000002' })), { kind: 'authenticated' }, 'the next count waits for nothing')
  t.match(await a.ask(a.answer({ nonce, nc: '00000003' })), stale, 'no other machine counts it')

  const raced = a.answer({ nonce: a.challenge() })
  t.same(await kinds(a.ask(raced), b.ask(raced)), ['authenticated', 'challenge'], 'the same at both at once')
  const own = a.challenge()
  const counts = ['00000002', '00000001', '00000002'].map(nc => a.ask(a.answer({ nonce: own, nc })))
  t.same(await kinds(...counts), ['authenticated', 'authenticated', 'challenge'], 'counts that come together')
  const successor = machine()
  t.match(await successor.ask(a.answer({ nonce: own, nc: '00000004' })), stale, 'a node that starts again counts none')

  const early = machine(NOW_MS - 20_000)
  t.equal((await early.ask(a.answer({ nonce: a.challenge() }))).kind, 'authenticated', 'its clock is 20 s behind')
  t.match(machine(NOW_MS - 3_600_000).check(a.answer({ nonce: a.challenge() })), stale, 'its clock is an hour behind')
  const foreign = desk({ nonces: sharedNonces(sharedNonceKey(Buffer.alloc(32, 2))), claim, start_ms: NOW_MS })
  t.match(
    foreign.check(a.answer({ nonce: a.challenge() })),
    { kind: 'challenge', challenges: [/qop="auth"$/] },
    'a platform with another master key takes it for forged',
  )
  t.equal((await b.ask(b.answer({ nonce: a.challenge(), password: 'wrong' }))).kind, 'challenge')
  t.equal((await b.ask(b.answer({ nonce: a.challenge('10.0.0.9') }))).kind, 'challenge', 'sent to another address')
})

t.test('while claims cannot be written, no shared nonce is accepted', async t => {
  const nonces = sharedNonces(sharedNonceKey(Buffer.alloc(32, 1)))
  let away = true
  const d = desk({ nonces, claim: () => (away ? Promise.reject(new Error('away')) : Promise.resolve(true)) })
  const answer = d.answer({ nonce: d.challenge() })
  await t.rejects(Promise.resolve(d.ask(answer)), /away/)
  away = false
  t.equal((await d.ask(answer)).kind, 'authenticated', 'the state is back')
})
