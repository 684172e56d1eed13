import { method } from './attributes.ts'
import { verb } from './verb.ts'

export const redirect = verb(
  'Redirect',
  { method: method(13710) },
  {
    kinds: ['call', 'whisper', 'queue_wait', 'conference_wait'],
    content: 'text',
    answers: () => false,
    ends: () => true,
    begin: ({ text, attributes }) => ({
      to: 'request',
      document: 'redirect',
      url: text === '' ? null : text,
      method: attributes.method,
      parameters: {},
    }),
  },
)
