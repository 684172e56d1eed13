import type { Move } from '../interpreter/turn.ts'
import type { Event } from '../interpreter/types.ts'
import { method, url } from './attributes.ts'
import { referSip, sipTarget } from './nouns/sip.ts'
import { isNode, type Node } from './shape.ts'
import { next, stay, toAction, verb } from './verb.ts'

/** How long to wait for the NOTIFY with the outcome of a transfer. */
const NOTIFY_LIMIT_MS = 60_000

const ATTRIBUTES = { action: url(), method: method() }

type ReferNode = Node<typeof ATTRIBUTES>

interface ReferState {
  readonly refer: string
  readonly timer: string
  readonly sip_code: number | null
  readonly notify_code: number | null
}

export const refer = verb('Refer', ATTRIBUTES, {
  nouns: [referSip],
  ends: node => node.attributes.action !== null,
  // REFER needs a confirmed dialog, so a valid Refer answers the call first.
  answers: node => targetOf(node) !== null,
  inspect(node, report) {
    const noun = node.nouns.find(n => isNode(referSip, n))
    const about = { element: 'Refer', rule: 'missing' } as const
    if (!noun) {
      const detail = '<Refer> needs one <Sip>; it is skipped'
      report({ ...about, number: 12200, detail, place: node.element })
      return
    }
    sipTarget(noun, report)
    const extra = node.nouns[1]
    if (extra) {
      const detail = '<Refer> takes one <Sip>; the others are ignored'
      report({ ...about, rule: 'content', number: 12200, detail, place: extra.element })
    }
  },

  begin(node, turn) {
    const target = targetOf(node)
    if (!target) return next
    if (!turn.facts.leg.sip) {
      turn.note('error', 13801, '<Refer> needs a call that came by SIP')
      return report(node, 'failed', null, null)
    }
    const id = turn.id('refer')
    const timer = turn.id('timer')
    turn.emit({ type: 'refer', id, ...target }, { type: 'start_timer', id: timer, ms: NOTIFY_LIMIT_MS })
    return stay({ refer: id, timer, sip_code: null, notify_code: null } satisfies ReferState)
  },

  on(node, turn, state: ReferState, event: Event) {
    if (event.type === 'timer' && event.id === state.timer)
      return report(node, 'failed', state.sip_code, state.notify_code)
    if (!('id' in event) || event.id !== state.refer) return undefined
    if (event.type === 'refer_accepted') return stay({ ...state, sip_code: event.sip_code })
    if (event.type === 'refer_notified') return stay({ ...state, notify_code: event.notify_code })
    if (event.type !== 'refer_ended') return undefined
    turn.emit({ type: 'cancel_timer', id: state.timer })
    const code = event.sip_code ?? state.sip_code
    const status = statusOf(code, event.notify_code)
    if (status === 'completed' && node.attributes.action === null) {
      turn.emit({ type: 'hangup' })
      return { to: 'done', outcome: 'transferred' }
    }
    return report(node, status, code, event.notify_code)
  },

  cut(_node, turn, state) {
    turn.emit({ type: 'cancel_timer', id: state.timer })
  },

  /** Reports `canceled` to the action: the far end often hangs up before it sends the outcome. */
  gone(node, turn, state) {
    turn.emit({ type: 'cancel_timer', id: state.timer })
    const canceled = parameters('canceled', state.sip_code, state.notify_code)
    turn.farewell(node.attributes.action, node.attributes.method, canceled)
    return { to: 'done', outcome: 'gone' }
  },
})

type Status = 'completed' | 'busy' | 'failed' | 'canceled'

/** A last NOTIFY of 1xx says that the transfer was still going on (RFC 3515 §2.4.5), not that it succeeded. */
function statusOf(sip_code: number | null, notify_code: number | null): Status {
  if (sip_code === null || sip_code >= 300 || notify_code === null) return 'failed'
  if (notify_code >= 200 && notify_code < 300) return 'completed'
  return notify_code === 486 || notify_code === 600 ? 'busy' : 'failed'
}

function report(node: ReferNode, status: Status, sip_code: number | null, notify_code: number | null): Move {
  return toAction(node.attributes, parameters(status, sip_code, notify_code))
}

function parameters(status: Status, sip_code: number | null, notify_code: number | null): Record<string, string> {
  return {
    ReferCallStatus: status,
    ...(sip_code === null ? {} : { ReferSipResponseCode: String(sip_code) }),
    ...(notify_code === null ? {} : { NotifySipResponseCode: String(notify_code) }),
  }
}

/** Returns the URI that the far end is to call; null when the Refer has no valid one. */
function targetOf(node: Node): { uri: string; headers: readonly (readonly [string, string])[] } | null {
  const noun = node.nouns.find(n => isNode(referSip, n))
  const target = noun ? sipTarget(noun, () => {}) : null
  if (!target || 'refused' in target) return null
  const uri = target.uris[0]?.uri
  return uri === undefined ? null : { uri, headers: target.headers }
}
