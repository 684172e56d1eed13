import { mediaAddress } from '../../../../../core/domain/calls/media-address.ts'
import t from '../../../../support/harness/index.ts'

const [ACCOUNT, RECORDING] = [`AC${'0a'.repeat(16)}`, `RE${'1b'.repeat(16)}`]
const PATH = `/2010-04-01/Accounts/${ACCOUNT}/Recordings/${RECORDING}`

t.test('an address of a recording is recognised however it is written', async t => {
  const ours = { recording_sid: RECORDING, account_sid: ACCOUNT }
  for (const url of [
    `https://voice.test${PATH}.wav`,
    `https://voice.test${PATH}`,
    `https://voice.test${PATH}.mp3`,
    `HTTPS://VOICE.TEST:443${PATH}.wav?x=1#rc=2`,
    `https://user:secret@voice.test${PATH}.wav`,
    `http://voice.test${PATH}.wav`,
    `https://voice.test/x/..${PATH}.wav`,
    `https://voice.test/${PATH}.wav`,
    `https://voice.test${PATH.replace('Recordings', '%52ecordings')}.wav`,
  ])
    t.same(mediaAddress(url, 'https://voice.test'), ours, url)
  t.same(mediaAddress(`https://voice.test/v1/recordings/${RECORDING}.wav`, 'https://voice.test/'), {
    recording_sid: RECORDING,
    account_sid: null,
  })
  t.same(mediaAddress(`https://voice.test/sub${PATH}.wav`, 'https://voice.test/sub'), ours)
})

t.test('an address of anything else is none of ours', async t => {
  for (const url of [
    `https://other.test${PATH}.wav`,
    `https://voice.test:8443${PATH}.wav`,
    `ftp://voice.test${PATH}.wav`,
    `https://voice.test${PATH}.mp4`,
    `https://voice.test${PATH.toUpperCase()}.wav`,
    `https://voice.test/other${PATH}.wav`,
    `https://voice.test/%zz${PATH}.wav`,
    'https://voice.test/prompts/1.wav',
    'not a URL',
  ])
    t.equal(mediaAddress(url, 'https://voice.test'), null, url)
})
