import { createCookieJar } from '../../../../core/domain/webhooks/cookies.ts'
import { fetchDocument } from '../../../../signaling/scripts/documents.ts'
import { controlPlane, freshKey } from '../../../support/control-plane.ts'
import t from '../../../support/harness/index.ts'
import { addTenant } from '../../../support/tenants.ts'

// Documents that calls run, from their address to the interpreter.

const w = await controlPlane(t)
const content = '<Response><Say>Hello</Say></Response>'
const saved = await w.ask('POST', '/v1/voice/documents', {
  body: { name: 'Greeting', content },
  headers: { 'Idempotency-Key': freshKey() },
})
const own: string = saved.body.url
const elsewhere = 'https://app.example.com/voice'

/** Fetches a document for a call of a project. Tells what the interpreter gets, and the addresses that were asked. */
async function fetched(url: string, by: { readonly token: string | null; readonly project_id?: string }) {
  const asked: string[] = []
  const { settings: config, state, clock } = w
  const requester = {
    ctx: {
      ...{ config, state },
      authToken: () => by.token,
      sounds: { isOwn: () => false },
      voice: {
        async send(request: { readonly url: string }) {
          asked.push(request.url)
          const headers = { 'content-type': 'text/xml' }
          return { ok: true, status: 200, duration_ms: 1, redirects: 0, headers, body: Buffer.from(content) }
        },
      },
    },
    call: {
      ...{ sid: 'CA1', project_id: by.project_id ?? w.demo.project_id, clock },
      ...{ parameters: () => ({}), persist: async () => undefined },
    },
    ...{ cookies: createCookieJar(), signal: new AbortController().signal, parameters: () => ({}) },
  }
  const command = { type: 'fetch', id: '1', document: 'entry', url, method: 'POST', parameters: {} } as const
  const { result } = await fetchDocument(requester as never, command)
  return { result, asked }
}

t.test('no document runs in the name of a revoked account, neither fetched nor saved here', async t => {
  const refused = { ok: false, number: 11200, detail: 'the voice account is not active' }
  for (const url of [own, elsewhere]) {
    t.match((await fetched(url, { token: 'of an active account' })).result, { ok: true, text: content }, url)
    t.same(await fetched(url, { token: null }), { result: refused, asked: [] }, url)
  }
})

t.test('a saved document runs in calls of its project alone, without a request to a server', async t => {
  const { project_id } = await addTenant(w.state, w.settings.master_key, [])
  t.match(await fetched(own, { token: 'x', project_id }), { result: { ok: false, number: 11200 }, asked: [] })
  t.same((await fetched(own, { token: 'x' })).asked, [])
})
