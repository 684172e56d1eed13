import type { DialChild, Event } from '../../../../markup/interpreter/types.ts'
import type { ScriptHost } from '../../../../signaling/b2bua/script-host.ts'
import type { ChildRequest } from '../../../../signaling/scripts/child-placing.ts'
import { Children } from '../../../../signaling/scripts/children.ts'
import type { RunningScript } from '../../../../signaling/scripts/running-script.ts'
import t from '../../../support/harness/index.ts'

const SIP = { kind: 'sip', uris: [], headers: [] } as const
const NUMBER = { kind: 'number', number: '+2348030000001' } as const

/** Returns the parameters that the whisper of a child adds to those of its call. */
async function whisperOf(target: DialChild['target']): Promise<Readonly<Record<string, string>> | undefined> {
  const events: Event[] = []
  const hosts: ScriptHost[] = []
  const call = {
    ...{ sid: 'CA2', leg: { id: 'b' }, row_now: { sip_call_id: 'b@desk' }, run: () => undefined },
    watchMedia: () => undefined,
    answer: { headers: { 'X-Desk': '7', 'User-to-User': '00' }, address: '192.0.2.7' },
  }
  const script = {
    host: { call: { log: {} }, leg: { id: 'a' } },
    ctx: {
      children: {
        place: async (_parent: unknown, { created }: ChildRequest) => {
          created(call as never)
          return null
        },
      },
    },
    another: (host: ScriptHost) => {
      hosts.push(host)
      return {}
    },
  }
  const children = new Children(script as unknown as RunningScript, event => events.push(event))
  children.dial({ type: 'dial_child', child: 'child-1', target, caller_id: '', machine_detection: null } as never)
  children.whisper({ type: 'whisper', child: 'child-1', url: 'https://app.example.test/w', method: 'POST' })
  t.same(events, [])
  return hosts[0]?.parameters?.()
}

t.test(
  'the whisper document of a SIP address gets parameters about the answer; that of a number gets none',
  async t => {
    t.same(await whisperOf(SIP), {
      SipCallId: 'b@desk',
      SipSourceIp: '192.0.2.7',
      'SipHeader_X-Desk': '7',
      'SipHeader_User-to-User': '00',
    })
    t.same(await whisperOf(NUMBER), {})
  },
)
