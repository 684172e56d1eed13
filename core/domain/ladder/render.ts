import { readSdp } from '../codecs/sdp.ts'
import { parseCSeq, statusIn } from '../sip/values.ts'
import { fieldReader, fieldsReader } from './field.ts'

/** The facts of a SIP message that the ladder shows. */
interface LadderMessage {
  /** Milliseconds since the epoch. */
  readonly at_ms: number
  readonly direction: 'in' | 'out'
  readonly protocol: string
  readonly remote: string
  readonly retransmission: boolean
  readonly text: string
}

const LANE = 30
/** The time of a message and the blanks after it. */
const TIME = 10
const cseq = fieldReader('cseq')
const reasons = fieldsReader('reason')

/**
 * Renders the messages of a call as text: a lane for each peer and for us, an arrow for each message, and the time
 * since the first. On a screen of `width` characters no line is longer, and lanes without room are left out.
 *
 *     +0.000  127.0.0.2:5070 --> INVITE sip:+2348030000001@… (udp, SDP)
 */
export function renderLadder(messages: readonly LadderMessage[], width: number | null = null): string {
  const first = messages[0]
  if (!first) return 'no SIP message is kept for this call\n'
  const peers = [...new Set(messages.map(message => message.remote))]
  if (width !== null && TIME + peers.length * (LANE + 2) > width) return narrow(messages, first.at_ms, width)
  const head = ['', ...peers.map(peer => peer.padEnd(LANE))].join('  ')
  const lines = messages.map(message => {
    const seconds = ((message.at_ms - first.at_ms) / 1000).toFixed(3).padStart(8)
    const lanes = peers.map(peer => (peer === message.remote ? arrow(message) : '').padEnd(LANE))
    return `${seconds}  ${lanes.join('  ')}  ${summary(message)}`.trimEnd()
  })
  return fitting([`${' '.repeat(8)}${head.trimEnd()}`, ...lines], width)
}

/** A line for each message without lanes, for screens on which the lanes have no room. */
function narrow(messages: readonly LadderMessage[], first_ms: number, width: number): string {
  const lines = messages.map(message => {
    const seconds = ((message.at_ms - first_ms) / 1000).toFixed(3).padStart(8)
    const way = message.direction === 'in' ? '>' : '<'
    return `${seconds} ${way} ${title(message.text)}  ${message.remote}  ${summary(message)}`
  })
  return fitting([`${'seconds'.padStart(8)}   message  peer`, ...lines], width)
}

const fitting = (lines: readonly string[], width: number | null): string =>
  lines.map(line => `${width === null || line.length <= width ? line : `${line.slice(0, width - 1)}…`}\n`).join('')

const arrow = (message: LadderMessage): string => {
  const name = title(message.text)
  const line = '-'.repeat(Math.max(2, LANE - name.length - 4))
  return message.direction === 'in' ? `${name} ${line}>` : `<${line} ${name}`
}

/** Returns the label of a message: `INVITE`, or `200 INVITE` for a response. */
export function title(text: string): string {
  const status = statusIn(text)
  if (status === null) return text.slice(0, text.search(/[ \r\n]|$/))
  return `${status} ${parseCSeq(cseq(text) ?? '')?.method ?? ''}`.trim()
}

function summary(message: LadderMessage): string {
  const media = mediaOf(message.text)
  const marks = [
    message.protocol,
    ...(media === null ? [] : [media]),
    ...(message.retransmission ? ['again'] : []),
    ...reasons(message.text),
  ]
  return marks.join(', ')
}

/** Summarizes an SDP by its first codec, port and direction: `PCMU/8000 :4000 sendonly`; null without audio. */
function mediaOf(text: string): string | null {
  const at = text.search(/^v=0|^m=/m)
  const reading = at === -1 ? null : readSdp(text.slice(at), () => '0.0.0.0')
  const line = reading && 'sdp' in reading ? reading.sdp.lines.find(({ kind }) => kind === 'audio') : undefined
  if (!line) return null
  const [first] = line.payloads
  const name = first ? `${first.encoding}/${first.clock_rate_hz}` : `type ${line.formats[0]}`
  return ['SDP', name, `:${line.port}`, line.direction === 'sendrecv' ? '' : line.direction].filter(Boolean).join(' ')
}
