import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { MANAGEMENT, openApiDocument } from '../../../control/openapi/document.ts'
import { voiceDocument } from '../../../control/openapi/voice.ts'
import { V1_ROUTES } from '../../../control/v1/index.ts'
import { VOICE_ROUTES } from '../../../control/voice/index.ts'
import type { VoiceRoute } from '../../../control/voice/route.ts'
import { iso } from '../../../core/runtime/clock.ts'
import { newId } from '../../../core/runtime/ids.ts'
import { addCallEvent } from '../../../core/state/calls/call-events.ts'
import { putSandboxCarrier } from '../../../core/state/configuration/bootstrap.ts'
import { controlPlane } from '../../support/control-plane.ts'
import t from '../../support/harness/index.ts'
import { acceptConsent, addRecording } from '../../support/recordings.ts'
import { addActivity, addConference, addQueue } from '../../support/rooms.ts'
import { stockClient } from '../../support/stock-library.ts'
import { exampleNow, fieldsOf } from './examples.ts'
import { nameOf } from './recipes.ts'

/** Runs the samples of the references as a reader does: in a shell, and as a program. */

const w = await controlPlane(t, { rate_limit: { burst: 1_000_000, per_second: 1_000_000 } })
await putSandboxCarrier(w.state, { machine_id: 'mac_1', host: '127.0.0.1', port: 5999, now: iso(Date.now()) })
const { account_sid, auth_token, numbers } = w.demo
const environment = {
  STROWGER_URL: w.base_url,
  STROWGER_API_KEY: w.key,
  ACCOUNT_SID: account_sid,
  AUTH_TOKEN: auth_token,
  FROM_NUMBER: numbers[0] ?? '',
}
const about = { base_url: w.base_url, version: '1.0.0' }

type Variables = Readonly<Record<string, string>>

interface Sampled {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}
interface Operation {
  readonly 'x-codeSamples': readonly { readonly label: string; readonly source: string }[]
}

/** Returns the sample of the only operation of a document. */
function sampleOf(document: object, label: string): string | undefined {
  const operations = Object.values((document as Sampled).paths).flatMap(path => Object.values(path))
  return operations[0]?.['x-codeSamples'].find(sample => sample.label === label)?.source
}

/** Runs a sample of curl. Returns the HTTP status, and the body when it is JSON. */
async function shell(
  source: string,
  variables: Variables,
): Promise<{ readonly status: number; readonly body: unknown }> {
  const env = { PATH: process.env['PATH'], ...environment }
  const own = Object.fromEntries(Object.entries(variables).map(([name, value]) => [name.toUpperCase(), value]))
  const text = `curl() { command curl -sS -w '\\n%{http_code}' "$@"; }\n${source}`
  // Without --norc bash would read its start file, because Node.js gives it a socket as standard input.
  const { stdout } = await promisify(execFile)('bash', ['--norc', '-c', text], { env: { ...env, ...own } })
  const end = stdout.lastIndexOf('\n')
  const body = stdout.slice(0, end)
  return { status: Number(stdout.slice(end + 1)), body: body.startsWith('{') ? JSON.parse(body) : undefined }
}

type Program = (...args: readonly unknown[]) => Promise<void>
const AsyncFunction = (async () => {}).constructor as new (...source: readonly string[]) => Program

/** Runs a sample of JavaScript and returns what it printed. */
async function program(source: string, variables: Readonly<Record<string, unknown>>): Promise<unknown[]> {
  const printed: unknown[] = []
  const console = { log: (...all: unknown[]) => printed.push(...all) }
  const given = { process: { env: environment }, console, ...variables }
  await new AsyncFunction(...Object.keys(given), source)(...Object.values(given))
  return printed
}

t.test('each sample of the management API gets what its example shows, and both samples ask the same', async t => {
  for (const route of V1_ROUTES) {
    const name = nameOf(route)
    const { made, example } = await exampleNow(w, route)
    const document = openApiDocument([route], about, { ...MANAGEMENT, examples: { [name]: example } })
    const variables = { ...made.params, revision: made.etag ?? '' }
    const { status, body } = await shell(sampleOf(document, 'curl') ?? '', variables)
    t.equal(status, example.status, `${name}: ${JSON.stringify(body)?.slice(0, 300)}`)
    t.same(fieldsOf(body), fieldsOf(example.response), name)

    const asked: [string, RequestInit][] = []
    const ask = async (url: string, init: RequestInit) => {
      asked.push([url, init])
      return new Response('', { status: 299 })
    }
    t.same(await program(sampleOf(document, 'fetch') ?? '', { ...variables, fetch: ask }), [299, ''], name)
    const [[url, init = {}] = []] = asked
    const path = route.path.replace(/\{(\w+)\}/g, (_, param: string) => made.params?.[param] ?? param)
    t.equal(url, `${w.base_url}/v1${path}${example.query ? `?${example.query}` : ''}`)
    const { Authorization, 'If-Match': revision } = init.headers as Variables
    const sent = init.body === undefined ? undefined : JSON.parse(String(init.body))
    t.same(
      { method: (init.method ?? 'GET').toLowerCase(), Authorization, revision, sent },
      {
        method: route.method,
        Authorization: `Bearer ${w.key}`,
        revision: route.if_match === undefined ? undefined : variables.revision,
        sent: example.body,
      },
      name,
    )
  }
})

t.test('each sample of the voice-calls API is carried out', async t => {
  const { client } = stockClient({ base_url: w.base_url, account_sid, auth_token })
  await w.state.db.updateTable('voice_account').set({ voice_api: 'extended' }).execute()
  let queues = 0
  let [call_sid, conference_sid] = ['', '']
  const onCall = async (): Promise<string> => {
    const form = { To: '+2348030000001', From: environment.FROM_NUMBER, Twiml: '<Response/>' }
    const { sid } = (await w.voice('POST', '/Calls.json', form)).body
    call_sid = sid
    // A redirect needs a live call, and a message one of a client; signaling, which would answer it, does not run here.
    await w.state.db
      .updateTable('call')
      .set({ status: 'in-progress', node_id: newId.node(), origin: 'client' })
      .where('sid', '=', sid)
      .execute()
    return sid
  }
  await acceptConsent(w)
  const things: Readonly<Record<string, (route: VoiceRoute) => Promise<string>>> = {
    call_sid: onCall,
    conference: async () => {
      conference_sid = await addConference(w, await onCall())
      return conference_sid
    },
    participant: async () => (await w.voice('GET', '/Calls.json')).body.calls[0].sid,
    queue_sid: async () => addQueue(w, `Queue ${++queues}`, null),
    member: async () => {
      await addQueue(w, `Queue ${queues}`, await onCall())
      return 'Front'
    },
    call_recording: async ({ method, path }) => {
      const sid = await addRecording(w, call_sid, method === 'POST' ? 'in-progress' : 'completed')
      const of = path.startsWith('/Conferences') ? { conference_sid } : {}
      await w.state.db
        .updateTable('recording')
        .set({ track: 'both', ...of })
        .where('sid', '=', sid)
        .execute()
      return sid
    },
    activity: async ({ path }) => {
      const kind = path.includes('/Streams') ? 'stream' : path.includes('/Siprec') ? 'siprec' : 'transcription'
      return addActivity(w, call_sid, kind)
    },
    notification_sid: async () => {
      const detail = { url: 'https://app.example.com/voice', detail: 'The document is no XML.' }
      await addCallEvent(w.state.db, { call_sid, kind: 'error', number: 12100, detail }, Date.now())
      return (await w.voice('GET', `/Calls/${call_sid}/Notifications.json`)).body.notifications[0].sid
    },
    subscription_sid: () => addActivity(w, call_sid, 'subscription'),
    number_sid: async () => (await w.voice('GET', '/IncomingPhoneNumbers.json')).body.incoming_phone_numbers[0].sid,
    application_sid: async () => {
      const body = { name: 'Sampled', voice_url: 'https://app.example.com/voice', voice_method: 'POST' }
      const headers = { 'Idempotency-Key': newId.uuid() }
      return (await w.ask('POST', '/v1/voice/applications', { body, headers })).body.id
    },
    recording_sid: async () => addRecording(w, (await w.voice('GET', '/Calls.json')).body.calls[0].sid),
  }
  for (const route of VOICE_ROUTES) {
    const name = `${route.method} ${route.path}${route.suffix}`
    const document = voiceDocument([route], about)
    for (const label of ['curl', 'stock library']) {
      const source = sampleOf(document, label)
      if (source === undefined) {
        t.equal(route.suffix === '.json' && label === 'stock library', false, `${name} has a sample: ${label}`)
        continue
      }
      // Both samples make the same queue.
      await w.state.db.deleteFrom('call_queue').execute()
      const variables: Record<string, string> = {}
      for (const [, param = ''] of route.path.matchAll(/\{(\w+)\}/g))
        variables[param] = (await things[param]?.(route)) ?? param
      if (label === 'curl')
        t.ok(Object.hasOwn(route.replies, (await shell(source, variables)).status), `${name}\n${source}`)
      else t.equal((await program(source, { ...variables, client })).length, 1, `${name}\n${source}`)
    }
  }
})
