export function pick<T>(random: () => number, from: readonly T[]): T {
  const chosen = from[Math.floor(random() * from.length)]
  if (chosen === undefined) throw new Error('nothing to pick from')
  return chosen
}

/** Text that is likely to break a document: markup, limits of attributes, odd characters. */
const PIECES = [
  '<Response>',
  '</Response>',
  '<Say>',
  '</Say>',
  '<Gather action="/a" numDigits="1">',
  '</Gather>',
  '<Dial>',
  '</Dial>',
  '<Number>+2348030000001</Number>',
  '<Sip>sip:a@b.example?X-A=%41&amp;Y=1</Sip>',
  '<Conference>r</Conference>',
  '<Enqueue>q</Enqueue>',
  '<Start><Recording/></Start>',
  '<Redirect/>',
  '<Pause length="0"/>',
  '<Record/>',
  '<!--',
  '-->',
  '<![CDATA[',
  ']]>',
  '<?pi x?>',
  '<!DOCTYPE a [<!ENTITY b "c">]>',
  '&amp;',
  '&#0;',
  '&#x10FFFF;',
  '&nope;',
  ' loop="0"',
  ' timeout="-1"',
  ' __proto__="x"',
  ' constructor="x"',
  ' toString=""',
  ' action="http://[::1"',
  ' url="//x"',
  ' finishOnKey="" ',
  '99999999999999999999',
  '\u0000',
  '\ud800',
  '\u202e',
  '😀',
  '\r',
  '\n',
  '"',
  "'",
  '<',
  '>',
  '/',
  '=',
  ':',
]

/** Makes one to eight changes: inserts a piece, cuts, repeats or moves text, replaces a character, splices texts. */
export function mutate(text: string, others: readonly string[], random: () => number): string {
  let result = text
  const changes = 1 + Math.floor(random() * 8)
  // Half of the documents stay well-formed, so that odd input also reaches the verbs.
  const gentle = random() < 0.5
  for (let i = 0; i < changes; i++) {
    result = gentle ? changeGently(result, random) : change(result, others, random)
  }
  return result.slice(0, 70_000)
}

const ELEMENTS = [
  '<Say loop="2">a <break time="1s"/> b</Say>',
  '<Play>a.wav</Play>',
  '<Pause length="0"/>',
  '<Gather numDigits="1"><Say>x</Say></Gather>',
  '<Record/>',
  '<Dial><Number url="/w" sendDigits="1">+2348030000001</Number><Client>c</Client></Dial>',
  '<Dial sequential="true" record="true"><Number>12345</Number><Sip>sip:a@b.example</Sip></Dial>',
  '<Dial hangupOnStar="true"><Conference>r</Conference></Dial>',
  '<Dial><Queue>q</Queue></Dial>',
  '<Number>+2348030000001</Number>',
  '<Enqueue>q</Enqueue>',
  '<Redirect/>',
  '<Leave/>',
  '<Echo/>',
  '<Refer><Sip>sip:a@b.example</Sip></Refer>',
  '<Connect><Stream url="wss://x.example"/></Connect>',
  '<Start><Recording/><Siprec/><Transcription/></Start>',
  '<Stop><Recording/></Stop>',
  '<Bogus a="1">x</Bogus>',
  'text',
]

const ATTRIBUTES = [
  'action',
  'timeout',
  'loop',
  'method',
  'url',
  'record',
  'sequential',
  'input',
  'name',
  'voice',
  'nope',
]

/** Replaces a value, or adds an attribute or an element. Tags stay balanced. */
function changeGently(text: string, random: () => number): string {
  if (random() < 0.5) return changeAttribute(text, random)
  const ends = [...text.matchAll(/[\w"]\s*(\/?>)(?!\s*$)/g)].map(match => match.index + match[0].length)
  const at = ends.length > 0 ? pick(random, ends) : 0
  if (random() < 0.6) return text.slice(0, at) + pick(random, ELEMENTS) + text.slice(at)
  const tag = text.slice(0, at).search(/\s*\/?>$/)
  if (tag < 0 || /<\/\w+$/.test(text.slice(0, tag))) return text
  return `${text.slice(0, tag)} ${pick(random, ATTRIBUTES)}="1"${text.slice(tag)}`
}

function change(text: string, others: readonly string[], random: () => number): string {
  const at = Math.floor(random() * (text.length + 1))
  const length = Math.floor(random() ** 3 * 60)
  const rest = text.slice(at + length)
  switch (Math.floor(random() * 7)) {
    case 0:
      return text.slice(0, at) + pick(random, PIECES) + text.slice(at)
    case 1:
      return text.slice(0, at) + rest
    case 2:
      return text.slice(0, at) + text.slice(at, at + length).repeat(1 + Math.floor(random() * 30)) + rest
    case 3:
      return text.slice(0, at) + String.fromCharCode(Math.floor(random() * 0x180)) + text.slice(at + 1)
    case 4: {
      const other = pick(random, others)
      const from = Math.floor(random() * other.length)
      return text.slice(0, at) + other.slice(from, from + length * 4) + rest
    }
    case 5:
      return changeAttribute(text, random)
    default:
      return rest + text.slice(0, at)
  }
}

/** Replaces a quoted value, so that the document still parses and its verbs see odd attributes. */
function changeAttribute(text: string, random: () => number): string {
  const places = [...text.matchAll(/="[^"]*"/g)]
  if (places.length === 0) return text
  const place = pick(random, places)
  const values = [
    '',
    '0',
    '-1',
    '1e9',
    'true',
    'TRUE',
    'GET',
    'x'.repeat(300),
    '#',
    '*',
    'http://',
    '/r',
    'auto',
    '1000',
    ' 5 ',
  ]
  return `${text.slice(0, place.index)}="${pick(random, values)}"${text.slice(place.index + place[0].length)}`
}
