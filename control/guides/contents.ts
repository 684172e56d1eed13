/** The order of the documentation's pages. A page is a file of `docs/guides`, `docs` or `docs/decisions`. */
export const CONTENTS: readonly { readonly group: string; readonly pages: readonly string[] }[] = [
  { group: 'Begin', pages: ['quick-start', 'first-trunk', 'first-application', 'move-from-twilio'] },
  { group: 'Run it', pages: ['going-live', 'operations', 'configuration', 'fraud', 'recording-and-consent'] },
  { group: 'When something is wrong', pages: ['troubleshooting', 'errors', 'limits'] },
  { group: 'Reference', pages: ['api', 'voice-api', 'markup', 'events', 'speech', 'metrics', 'glossary'] },
  {
    group: 'How it works',
    pages: [
      ...['architecture', 'calls', 'media', 'edge', 'http', 'readers', 'drachtio'],
      ...['testing', 'proofs', 'threats', 'conformance', 'dependencies', 'decisions'],
    ],
  },
]

/** References that are made from the routes, not from files. */
export const GENERATED: readonly { readonly path: string; readonly title: string }[] = [
  { path: '/docs/endpoints', title: 'Management API' },
  { path: '/docs/operator', title: 'Operator API' },
  { path: '/docs/voice', title: 'Voice-calls API, by endpoint' },
  { path: '/docs', title: 'Try the management API' },
  { path: '/docs/errors', title: 'Errors, one by one' },
]
