import { splitPayload } from '../../../signaling/edge/control/command.ts'
import { newUuid } from '../../../signaling/edge/sip/ids.ts'
import { parseMessage } from '../../../signaling/edge/sip/parse.ts'
import { Control } from './replay-ends.ts'

/** An application on the raw control link. It registers for verbs and answers requests as the test says. */
export interface Robot {
  readonly seen: { readonly fields: readonly string[]; readonly text: string; readonly method: string }[]
  readonly replies: string[]
  /** Returns the status for a request, by default 200; 0 leaves it unanswered. */
  answer: (method: string, text: string) => number
  /** Returns further header lines of an answer, each with its line break. */
  headers: (method: string, text: string) => string
  command(payload: string): void
  close(): void
}

export async function startRobot(port: number, verbs: readonly string[], secret = 'cymru'): Promise<Robot> {
  let ready = (): void => undefined
  const registered = new Promise<void>(resolve => {
    ready = resolve
  })
  let open = verbs.length + 1
  const control: Control = await Control.open(port, payload => {
    const { fields, text } = splitPayload(payload)
    if (fields[1] !== 'sip') {
      robot.replies.push(payload)
      if (--open === 0) ready()
      return
    }
    const parsed = parseMessage(text)
    const method = parsed.kind === 'junk' ? '' : parsed.message.method
    robot.seen.push({ fields, text, method })
    if (method === '' || method === 'ACK' || method === 'CANCEL' || fields[2] !== 'network') return
    const status = robot.answer(method, text)
    if (status === 0) return
    const cseq = parsed.kind === 'junk' ? '' : (parsed.message.get('cseq') ?? '')
    control.send(
      `${newUuid()}|sip|${fields[8]}|\r\nSIP/2.0 ${status} Robot\r\ncseq: ${cseq}\r\n${robot.headers(method, text)}\r\n`,
      false,
    )
  })
  const robot: Robot = {
    seen: [],
    replies: [],
    answer: () => 200,
    headers: () => '',
    command: payload => control.send(payload, false),
    close: () => control.close(),
  }
  control.send(`${newUuid()}|authenticate|${secret}|`, false)
  for (const verb of verbs) control.send(`${newUuid()}|route|${verb}`, false)
  await registered
  return robot
}

export const ALL_VERBS: readonly string[] = [
  'invite',
  'options',
  'register',
  'message',
  'info',
  'subscribe',
  'notify',
  'publish',
]
