import { createHttpClient } from '../../../../core/runtime/http/index.ts'
import { createVoices } from '../../../../media/files/voice.ts'
import type { PlaySource } from '../../../../media/protocol/schema.ts'
import type { ScriptHost } from '../../../../signaling/b2bua/script-host.ts'
import { LegPlayer } from '../../../../signaling/scripts/player.ts'
import { tone, wavBytes } from '../../../support/audio.ts'
import t from '../../../support/harness/index.ts'
import { webServer } from '../../../support/web.ts'

t.test(
  'Say of an application asks the voice that the application chose, and the operator’s for all others',
  async t => {
    const wav = { type: 'audio/wav', body: wavBytes(8000, tone(500, 100)) }
    const web = await webServer(t, { '/operator/audio/speech': wav, '/own': wav })
    const operator = { engine: 'openai', url: `${web.url}/operator`, api_key: 'k', model: null, voice: 'nova' } as const
    const engines = { tts: operator, tts_choices: [operator, { engine: 'url', url: `${web.url}/own` } as const] }
    const http = createHttpClient({ allow_private: ['loopback'], user_agent: 'test' })
    const voices = createVoices(engines, http, {
      decode: async () => ({ pcm: { samples: new Int16Array(800), rate_hz: 8000 } }),
    })

    /** Returns the paths that one Say in a call of this application asks. */
    const asked = async (application_id: string | null): Promise<string[]> => {
      const text = `Hello ${application_id}`
      const before = web.requests.length
      await new Promise<void>((resolve, reject) => {
        const request = async (_method: string, { sources }: { sources: PlaySource[] }) => {
          for (const source of sources) if (source.kind === 'speech') await voices.speak({ ...source, owner: 'p' })
          resolve()
        }
        const applications = new Map([
          ['AP-own', { tts: 'url' }],
          ['AP-none', { tts: null }],
          ['AP-gone', { tts: 'elevenlabs' }],
        ])
        const ctx = { config: { ...engines, stt: null, stt_choices: [] }, snapshot: () => ({ applications }) }
        const call = {
          row_now: { application_id },
          log: { info: ({ err }: { err: unknown }) => reject(err) },
        }
        const host = { call, leg: { id: 'leg', ended: false, session: { hub: { request } } } } as unknown as ScriptHost
        const speech = { kind: 'speech', text, ssml: null, voice: 'man', language: 'en-US', loop: 1 } as const
        new LegPlayer(ctx as never, host, () => undefined).play({ type: 'play', id: 'say', items: [speech] } as never)
      })
      return web.requests.slice(before).map(({ path }) => path)
    }
    t.strictSame(await asked('AP-own'), ['/own'])
    t.strictSame(await asked('AP-none'), ['/operator/audio/speech'])
    t.strictSame(await asked('AP-gone'), ['/operator/audio/speech'], 'an engine that is not ready any more')
    t.strictSame(await asked(null), ['/operator/audio/speech'])
  },
)

t.test('speech by another voice than the named one is a warning on the call, not a sound that is missing', t => {
  const requests: { play_id: string }[] = []
  const request = async (_method: string, params: { play_id: string }) => requests.push(params)
  const config = { tts: { engine: 'openai' }, stt: null, tts_choices: [], stt_choices: [] }
  const ctx = { config, snapshot: () => ({ applications: new Map() }) }
  const call = { row_now: { application_id: null }, persist: () => t.fail('an exchange is recorded') }
  const host = { call, leg: { id: 'leg', ended: false, session: { hub: { request } } } } as unknown as ScriptHost
  const told: unknown[] = []
  const player = new LegPlayer(ctx as never, host, event => told.push(event))
  const speech = { kind: 'speech', text: 'Hello', ssml: null, voice: 'x', language: 'en-US', loop: 1 } as const
  player.play({ type: 'play', id: 'say', items: [speech] })
  const failures = [{ index: 0, reason: 'voice_unknown', detail: 'the default speaks' }] as const
  const play_id = requests[0]?.play_id ?? ''
  player.media({ event: 'play.ended', leg_id: 'leg', play_id, reason: 'finished', failures: [...failures] })
  t.same(told, [
    { type: 'play_ended', id: 'say', failures: [{ item: 0, number: 13511, detail: 'the default speaks' }] },
  ])
  t.end()
})
