/** Packages that stay in node_modules: they have native code, find files beside themselves, or few calls need them. */
export const LEFT_OUT = [
  /^@opentelemetry\//,
  'better-sqlite3',
  'drachtio-srf',
  'mpg123-decoder',
  'nodemailer',
  'pdfkit',
  'pg',
  'swagger-ui-dist',
  'wasm-media-encoders',
  'werift',
]
