import { readdirSync, readFileSync } from 'node:fs'
import { checkDocument } from '../../../markup/check.ts'
import t from '../../support/harness/index.ts'
import { call, response } from './phone.ts'
import { carryOn, type Habits } from './world.ts'

// The check and a running call judge a document alike, and every document that we show is good for both.

const HABITS: readonly Habits[] = [{}, { keys: '1' }, { child: 'busy' }]

/** What calls note about an inline document, whatever happens in them: level and number. */
const noted = (test: Parameters<typeof call>[0], text: string): string[] => {
  const found = HABITS.flatMap(habits => {
    const speech = { recognizer: true, transcriber: true, languages: ['en-GB', 'en-US', 'fr', 'yo'] }
    const phone = call(test, text, { inline: true, speech })
    carryOn(phone.commands, event => phone.send(event), habits)
    return phone.all.flatMap(command => (command.type === 'note' ? [`${command.level} ${command.number}`] : []))
  })
  return [...new Set(found)].sort()
}

const checked = (text: string): string[] =>
  [
    ...new Set(
      checkDocument(text).advice.flatMap(({ level, number }) => (number === null ? [] : [`${level} ${number}`])),
    ),
  ].sort()

t.test('a URL without a base is judged in the check as in a call', async t => {
  const documents: Readonly<Record<string, string>> = {
    'action of Gather': '<Gather action="/a" timeout="1"/>',
    'no action of Gather': '<Gather timeout="1"/>',
    'callback of Gather': '<Gather action="https://a.example/" partialResultCallback="/p" input="speech"/>',
    'action of Record': '<Record action="/a"/>',
    'no action of the last Record': '<Record/>',
    'callbacks of Record': '<Record action="https://a.example/" recordingStatusCallback="/r"/>',
    'action of Dial': '<Dial action="/a">+2348030000001</Dial>',
    'whisper of Number': '<Dial><Number url="/w">+2348030000001</Number></Dial>',
    'callback of Number': '<Dial><Number statusCallback="/s">+2348030000001</Number></Dial>',
    'callback of a machine':
      '<Dial><Number machineDetection="Enable" amdStatusCallback="/m">+2348030000001</Number></Dial>',
    'callback of a recorded Dial':
      '<Dial record="record-from-answer" recordingStatusCallback="/r">+2348030000001</Dial>',
    'callback of Conference': '<Dial><Conference statusCallback="/s" statusCallbackEvent="join">R</Conference></Dial>',
    'music of Conference': '<Dial><Conference waitUrl="/w">R</Conference></Dial>',
    'action of Enqueue': '<Enqueue action="/a">Q</Enqueue>',
    'music of Enqueue': '<Enqueue waitUrl="/w">Q</Enqueue>',
    'sound of Play': '<Play>a.wav</Play>',
    'address of Redirect': '<Redirect>next</Redirect>',
    'no address of Redirect': '<Redirect/>',
    'callback of Stream': '<Start><Stream url="wss://a.example/" statusCallback="/s"/></Start>',
  }
  for (const [what, verb] of Object.entries(documents))
    t.strictSame(checked(response(verb)), noted(t, response(verb)), what)
  const followed = response('<Record/>', '<Say>never</Say>')
  t.strictSame(checked(followed), ['warning 11100'])
  t.strictSame(noted(t, followed), ['warning 11100'], 'verbs after it are never reached')
})

/** A whole document. One with `${` is a template of code. */
const DOCUMENT = /(?:<\?xml[^>]*\?>\s*)?<Response>(?:(?!\$\{)[\s\S])*?<\/Response>/g

const files = (folder: string, ending: RegExp): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(name => ending.test(name))
    .map(name => `${folder}/${name}`)

t.test('every document in the README, the guides, the console, the API and the command is good for both', async t => {
  const sources = [
    'README.md',
    ...files('docs', /\.md$/),
    ...files('control', /\.(ts|tsx|json)$/),
    ...files('bin', /\.ts$/),
  ]
  const shown = sources.flatMap(file => {
    const text = readFileSync(file, 'utf8')
    const plain = file.endsWith('.json') ? text.replaceAll('\\n', '\n').replaceAll('\\"', '"') : text
    // <Leave> stands in the document of a waitUrl alone, which no call runs.
    return [...plain.matchAll(DOCUMENT)]
      .map(([document]) => ({ file, document }))
      .filter(({ document }) => !document.includes('<Leave'))
  })
  for (const file of ['README.md', 'control/console/lib/examples.ts', 'control/openapi/examples.json', 'bin/call.ts'])
    t.ok(
      shown.some(found => found.file === file),
      `${file} shows a document`,
    )
  for (const { file, document } of shown) {
    t.strictSame(checkDocument(document).advice, [], `${file}: ${document}`)
    t.strictSame(noted(t, document), [], file)
  }
})
