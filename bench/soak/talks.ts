import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { decodedText } from '../../signaling/edge/sip/message.ts'
import type { UserAgentCall } from '../../signaling/edge/useragent/call.ts'
import { UserAgent } from '../../signaling/edge/useragent/user-agent.ts'
import { PEER_IP, TARGET_IP } from '../platform/platform.ts'

// Calls between a trunk's peer and its target with sound in both directions. Agents in this process handle SIP. The
// load generator of bench/media sends RTP and counts the packets that arrive at the other side.

const root = join(import.meta.dirname, '../../..')
const LOAD = join(root, 'build/bench-media/load')
/** Ports below the platform's and the machine's ephemeral ports. */
const SOUND_PORTS = { first: 11_800, count: 16 }
const CONNECTS_A_SECOND = 30
const ANSWER_LIMIT_MS = 10_000

interface Talk {
  readonly near: UserAgentCall
  readonly far: UserAgentCall
  /** The platform's RTP ports towards both sides. */
  readonly ports: readonly [number, number]
}

/** The load generator's results. */
export interface Sound {
  readonly sent: number
  readonly received: number
  readonly loss_pct: number
  readonly bad: number
  readonly silent_legs: number
  /** CPU time of the media worker in percent of a core. */
  readonly core_pct: number
}

export interface Talks {
  connect(count: number): Promise<Talk[]>
  /** Lets further calls go to another machine. */
  aim(sip_port: number): void
  /** Sends and counts sound on all legs for `duration_ms`. */
  talk(talks: readonly Talk[], duration_ms: number, media_pid: number): Promise<Sound>
  /** Places calls until one is answered. Returns the milliseconds until then; null when `limit_ms` passes first. */
  untilAnswered(limit_ms: number): Promise<number | null>
  /** Hangs up all remaining calls. */
  hangUp(): Promise<void>
  close(): void
}

export const alive = (talk: Talk): boolean => talk.near.state === 'answered' && talk.far.state === 'answered'

/** `target_port` is the SIP port of the trunk's target; `sip_port` is the platform's. */
export async function openTalks(facts: { folder: string; sip_port: number; target_port: number }): Promise<Talks> {
  const made = spawnSync('make', ['-s', '-C', join(root, 'bench/media')], { stdio: 'inherit' })
  if (made.status !== 0) throw new Error('the load generator of bench/media could not be built')
  writeFileSync(join(facts.folder, 'PCMU.pay'), pcmuFrames())
  const target = await openTarget(facts.target_port)
  const peer = await UserAgent.open({ listeners: [{ protocol: 'udp', host: PEER_IP, port: 0 }], user: 'peer' })
  let numbers = 0
  let { sip_port } = facts
  const place = (rtp_port: number): { number: string; answer: Promise<Placed | null> } => {
    const number = `+23480${String(30_100_000 + (numbers++ % 800_000))}`
    const answer = new Promise<Placed | null>(resolve => {
      setTimeout(() => resolve(null), ANSWER_LIMIT_MS).unref()
      const call: UserAgentCall = peer.call(`sip:${number}@127.0.0.1`, {
        hop: `sip:127.0.0.1:${sip_port}`,
        body: sdpOf(PEER_IP, rtp_port),
        events: {
          answered: response => resolve({ call, port: audioPort(decodedText(response.body)) }),
          failed: () => resolve(null),
        },
      })
    })
    return { number, answer }
  }
  return {
    async connect(count) {
      const asked: Promise<Talk | null>[] = []
      for (let at = 0; at < count; at++) {
        const { number, answer } = place(soundPort(2 * at))
        target.expect(number, soundPort(2 * at + 1))
        asked.push(
          answer.then(near => {
            const far = target.taken(number)
            return near && far ? { near: near.call, far: far.call, ports: [near.port, far.port] } : null
          }),
        )
        await pause(1000 / CONNECTS_A_SECOND)
      }
      return (await Promise.all(asked)).filter(talk => talk !== null)
    },
    aim(other) {
      sip_port = other
    },
    async talk(talks, duration_ms, media_pid) {
      const legs = join(facts.folder, 'legs.csv')
      const lines = talks.flatMap(({ ports }, call) =>
        ports.map((port, side) => `${call},${soundPort(2 * call + side)},${port},PCMU,0,,,`),
      )
      writeFileSync(legs, `${lines.join('\n')}\n`)
      const times = ['--warmup-ms', '500', '--duration-ms', String(duration_ms)]
      const load = spawn(LOAD, ['--legs', legs, '--payloads', facts.folder, '--pid', String(media_pid), ...times], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      let printed = ''
      load.stdout.on('data', chunk => {
        printed += chunk
      })
      await once(load, 'close')
      return JSON.parse(printed)
    },
    async untilAnswered(limit_ms) {
      const from = performance.now()
      let answered: number | null = null
      while (answered === null && performance.now() - from < limit_ms) {
        void place(9).answer.then(near => {
          answered ??= near ? performance.now() - from : null
          near?.call.hangUp()
        })
        await pause(250)
      }
      return answered
    },
    async hangUp() {
      for (const call of [...peer.calls, ...target.ua.calls]) if (call.state === 'answered') call.hangUp()
      for (let looks = 0; looks < 400 && peer.calls.length + target.ua.calls.length > 0; looks++) await pause(100)
    },
    close() {
      peer.close()
      target.ua.close()
    },
  }
}

interface Placed {
  readonly call: UserAgentCall
  readonly port: number
}

/** Answers every call. Expected calls get a port for their sound, other calls none. */
async function openTarget(port: number) {
  const expected = new Map<string, number>()
  const taken = new Map<string, Placed>()
  const ua = await UserAgent.open({
    listeners: [{ protocol: 'udp', host: TARGET_IP, port }],
    user: 'target',
    incoming(call) {
      const number = /^sip:([^@;]+)/.exec(call.invite?.uri ?? '')?.[1] ?? ''
      const rtp_port = expected.get(number)
      if (rtp_port !== undefined) taken.set(number, { call, port: audioPort(call.offer) })
      expected.delete(number)
      call.answer({ body: sdpOf(TARGET_IP, rtp_port ?? 9) })
    },
  })
  return {
    ua,
    expect: (number: string, rtp_port: number) => void expected.set(number, rtp_port),
    taken(number: string): Placed | undefined {
      const found = taken.get(number)
      taken.delete(number)
      return found
    },
  }
}

const soundPort = (leg: number): number => SOUND_PORTS.first + (leg % SOUND_PORTS.count)

const sdpOf = (ip: string, port: number): string =>
  ['v=0', `o=- 1 1 IN IP4 ${ip}`, 's=-', 'c=IN IP4 127.0.0.1', 't=0 0', `m=audio ${port} RTP/AVP 0`, ''].join('\r\n')

const audioPort = (sdp: string): number => Number(/^m=audio (\d+)/m.exec(sdp)?.[1] ?? 0)

/** Returns frames of 20 ms with a rising pattern, each after a two-byte length, in the load generator's format. */
function pcmuFrames(): Buffer {
  const frame = (n: number): Buffer => Buffer.from([0, 160, ...Array.from({ length: 160 }, (_, at) => (n + at) & 255)])
  return Buffer.concat(Array.from({ length: 50 }, (_, n) => frame(n)))
}
