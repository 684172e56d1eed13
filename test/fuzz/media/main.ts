import { readdirSync, readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { seeded } from '../../../bench/random.ts'
import {
  answerOffer,
  type LocalSide,
  type MediaPolicy,
  makeOffer,
  NO_CONTINUITY,
  readAnswer,
  readOffer,
} from '../../../core/domain/codecs/negotiate.ts'
import { readSdp, writeSdp } from '../../../core/domain/codecs/sdp.ts'
import { decodeAudio } from '../../../media/files/decode.ts'
import type { Mp3Decoder } from '../../../media/files/mp3.ts'
import { readVoipMetrics } from '../../../media/quality/xr.ts'

/**
 * Fuzzes the media worker's JavaScript parsers of untrusted input: SDP, audio files, RTCP reports.
 * node build/test/fuzz/media/main.js --count N --seed N: a finding throws, so the exit code is 1.
 */

const KEY = Buffer.alloc(46, 9).toString('base64')
const keys = {
  AEAD_AES_128_GCM: KEY,
  AEAD_AES_256_GCM: KEY,
  AES_CM_128_HMAC_SHA1_80: KEY,
  AES_CM_128_HMAC_SHA1_32: KEY,
  AES_256_CM_HMAC_SHA1_80: KEY,
  AES_256_CM_HMAC_SHA1_32: KEY,
}
const browser = { ice_ufrag: 'abcd', ice_pwd: 'efgh', fingerprint: '00:11' }
const side = (policy: MediaPolicy): LocalSide => ({
  session_id: '1',
  address: '192.0.2.9',
  rtp_port: 20_000,
  rtcp_port: 20_001,
  policy,
  keys,
  browser: policy.security === 'dtls_srtp' ? browser : null,
  direction: 'sendrecv',
})
const POLICIES: readonly MediaPolicy[] = (['rtp', 'sdes_srtp_required', 'dtls_srtp'] as const).map(security => ({
  codecs: ['PCMA', 'PCMU', 'G722', 'G729', 'OPUS'],
  security,
  telephone_event: true,
}))

const folder = (path: string) => readdirSync(path).map(name => readFileSync(`${path}/${name}`))

function damaged(seeds: readonly Buffer[], random: () => number): Buffer {
  const index = Math.floor(random() * seeds.length)
  const bytes = Buffer.from(seeds[index] ?? Buffer.alloc(0))
  for (let change = 0; change < 1 + random() * 8; change++) bytes[Math.floor(random() * bytes.length)] = random() * 256
  const cut = random() < 0.3 ? bytes.subarray(0, Math.floor(random() * bytes.length)) : bytes
  const other = seeds[Math.floor(random() * seeds.length)] ?? cut
  return random() < 0.3 ? Buffer.concat([cut, other.subarray(Math.floor(random() * other.length))]) : cut
}

/** Repeats or drops lines of SDP, inserts lines of another text, or changes numbers. The result resembles SDP. */
function reworded(seeds: readonly Buffer[], random: () => number): Buffer {
  const pick = <T>(items: readonly T[]) => items[Math.floor(random() * items.length)]
  const text = (bytes: Buffer | undefined) => (bytes ?? Buffer.alloc(0)).toString('utf8').replace(/^# .*\n/, '')
  const lines = text(pick(seeds)).split(/\r?\n/)
  for (let change = 0; change < 1 + random() * 4; change++) {
    const at = 1 + Math.floor(random() * (lines.length - 1))
    const other = pick(text(pick(seeds)).split(/\r?\n/)) ?? ''
    const how = random()
    if (how < 0.25) lines.splice(at, 0, other)
    else if (how < 0.4) lines.splice(at, 1)
    else if (how < 0.5) lines.splice(at, 0, lines[at] ?? '')
    else lines[at] = (lines[at] ?? '').replace(/\d+/g, digits => (random() < 0.3 ? (pick(NUMBERS) ?? digits) : digits))
  }
  return Buffer.from(lines.join('\r\n'))
}

const NUMBERS = [
  '0',
  '1',
  '8',
  '96',
  '101',
  '127',
  '128',
  '8000',
  '48000',
  '65536',
  '4294967296',
  '99999999999999999999',
]

/** Reads or refuses a text. Throws when our answer to it cannot be parsed or is not a subset of the offer. */
function trySdp(text: string): string {
  const reading = readSdp(text)
  if ('refused' in reading) return reading.refused
  let outcome = 'refused'
  for (const policy of POLICIES) {
    const own = side(policy)
    const { local, continuity } = makeOffer(own, NO_CONTINUITY, [])
    readAnswer(reading.sdp, local, own, continuity)
    const offer = readOffer(reading.sdp, policy)
    if ('refused' in offer) continue
    const answer = answerOffer(offer, own, NO_CONTINUITY, [])
    if ('refused' in answer) continue
    const again = readSdp(writeSdp(answer.local))
    if ('refused' in again) throw new Error(`our own answer cannot be read: ${again.detail}`)
    const offered = new Set(reading.sdp.lines[offer.audio]?.formats)
    const strange = again.sdp.lines[offer.audio]?.formats.find(format => !offered.has(format))
    if (strange !== undefined) throw new Error(`the answer holds ${strange}, which was not offered`)
    outcome = 'answered'
  }
  return outcome
}

const noMp3: Mp3Decoder = {
  decode: async () => ({ refused: 'audio_unsupported', detail: 'its thread has its own test' }),
}

const RTCP = Buffer.from(`80c900010000000780cf000a000000070700000800000007${'40'.repeat(28)}`, 'hex')

async function fuzz(count: number, seed: number): Promise<Record<string, number>> {
  const sdp = [...folder('fixtures/sdp/good'), ...folder('fixtures/sdp/bad')]
  const audio = folder('fixtures/audio').map(bytes => bytes.subarray(0, 600))
  const seen: Record<string, number> = {}
  for (let run = 0; run < count; run++) {
    const random = seeded(seed + run)
    const harm = run % 3 === 2 && random() < 0.7 ? reworded : damaged
    const input = harm(run % 3 === 0 ? audio : run % 3 === 1 ? [RTCP] : sdp, random)
    try {
      let outcome: string
      if (run % 3 === 0) {
        const decoded = await decodeAudio(input, null, noMp3)
        outcome = 'pcm' in decoded ? 'audio read' : 'audio refused'
      } else if (run % 3 === 1) outcome = readVoipMetrics(input) ? 'report read' : 'report ignored'
      else outcome = `sdp ${trySdp(input.toString('utf8'))}`
      seen[outcome] = (seen[outcome] ?? 0) + 1
    } catch (error) {
      throw new Error(
        `seed ${seed + run}: ${error instanceof Error ? error.stack : error}\n${input.toString('base64')}`,
      )
    }
  }
  return seen
}

const { values } = parseArgs({ options: { count: { type: 'string' }, seed: { type: 'string' } } })
const count = Number(values.count ?? 300_000)
const seed = Number(values.seed ?? 1)
const began = performance.now()
const seen = await fuzz(count, seed)
const seconds = Math.round((performance.now() - began) / 1000)
process.stdout.write(`${JSON.stringify({ count, seed, ...seen, seconds })}\n`)
