import type { HttpClient } from '../../../../core/runtime/http/index.ts'
import { createTranscriber } from '../../../../media/speech/transcriber.ts'
import t from '../../../support/harness/index.ts'
import { until } from '../../../support/wait.ts'

t.test('recordings of a project wait for their transcription, and those of others do not wait for them', async t => {
  const folder = t.testdir({ 'hang.wav': 'hang', 'own.wav': 'own' })
  let held = 0
  const request = ({ body }: { readonly body: Buffer }) => {
    if (body.toString() === 'own')
      return Promise.resolve({ ok: true, status: 200, headers: {}, body: Buffer.from('{"transcript":"tea"}') })
    held++
    return new Promise(() => undefined)
  }
  const transcribe = createTranscriber('https://engine.test/', { request } as unknown as HttpClient)
  if (!transcribe) throw new Error('there is no transcriber')
  for (let n = 0; n < 200; n++) void transcribe(`${folder}/hang.wav`, 'en-US', 'prj_greedy')
  t.match(await transcribe(`${folder}/own.wav`, 'en-US', 'prj_rival'), { text: 'tea', fault: null })
  await until('some are at the engine', () => held === 16)
  const refused = await transcribe(`${folder}/own.wav`, 'en-US', 'prj_greedy')
  t.match(refused, { text: null, fault: 'too many recordings of the project wait to be transcribed' })
  t.equal(held, 16)
})
