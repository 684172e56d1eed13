import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { withSecretFiles } from '../../../../core/runtime/secret-files.ts'
import t from '../../../support/harness/index.ts'

t.test('a secret comes from its variable, its file or its credential, and only from one', async t => {
  const folder = t.testdir({
    smtp: 'smtp://u:from-file@mail.example\n',
    credentials: { STROWGER_SMTP_URL: 'smtp://u:from-credential@mail.example', STROWGER_LOG: 'trace' },
  })
  const CREDENTIALS_DIRECTORY = join(folder, 'credentials')
  const STROWGER_SMTP_URL_FILE = join(folder, 'smtp')
  const file = withSecretFiles({ STROWGER_SMTP_URL_FILE, CREDENTIALS_DIRECTORY })
  t.same(file.env, { STROWGER_SMTP_URL: 'smtp://u:from-file@mail.example', CREDENTIALS_DIRECTORY })
  t.equal(file.origin.get('STROWGER_SMTP_URL'), 'file')
  const credential = withSecretFiles({ CREDENTIALS_DIRECTORY })
  t.equal(credential.env['STROWGER_SMTP_URL'], 'smtp://u:from-credential@mail.example')
  t.equal(credential.origin.get('STROWGER_SMTP_URL'), 'credential')
  t.equal(credential.env['STROWGER_LOG'], undefined, 'what is no secret does not come from a file')
  const value = withSecretFiles({ STROWGER_SMTP_URL: 'smtp://here', CREDENTIALS_DIRECTORY })
  t.match(value, { env: { STROWGER_SMTP_URL: 'smtp://here' }, faults: [] })
  const both = withSecretFiles({ STROWGER_SMTP_URL: 'smtp://here', STROWGER_SMTP_URL_FILE })
  t.match(both.faults, [/STROWGER_SMTP_URL and STROWGER_SMTP_URL_FILE are both set/])
})

t.test('a file that cannot be used is told with its path, and without what stands in it', async t => {
  const folder = t.testdir({ empty: '\n', large: `pa55word${'x'.repeat(70_000)}`, folder: {} })
  const faults = (name: string) => withSecretFiles({ STROWGER_SMS_TOKEN_FILE: join(folder, name) }).faults
  t.match(faults('missing'), [/^STROWGER_SMS_TOKEN_FILE: .*missing cannot be read \(ENOENT\)$/])
  t.match(faults('empty'), [/is empty/])
  t.match(faults('large'), [/has more than 64 KiB/])
  t.match(faults('folder'), [/is no file/])
  t.notMatch(faults('large').join(), /pa55word/)
  writeFileSync(join(folder, 'own'), 'x')
  chmodSync(join(folder, 'own'), 0o600)
  t.same(faults('own'), [])
})
