import { SSML, safeSsml } from '../../../../../core/domain/speech/ssml.ts'
import t from '../../../../support/harness/index.ts'
import { fc } from '../../../../support/properties.ts'

t.test('SSML keeps listed tags, and only the text of all others', async t => {
  const cases: [given: string, safe: string][] = [
    ['plain & simple', '<speak>plain &amp; simple</speak>'],
    ['<speak xml:base="file:///etc/">a <break time="10s"/> b</speak>', '<speak>a <break time="10s"/> b</speak>'],
    [
      '<speak>a<break time="2900s"/><break time="10.1s"/><break time="10001ms"/></speak>',
      '<speak>a<break/><break/><break/></speak>',
    ],
    ['<speak>a<audio src="/data/recordings/RE1.wav">alt</audio></speak>', '<speak>aalt</speak>'],
    ['<speak><AUDIO src="x"/><voice name="../../x">b</voice><mark name="m"/></speak>', '<speak>b</speak>'],
    ['<speak><p onload="x">a</p></speak>', '<speak><p>a</p></speak>'],
    ['<speak><p><s>open', '<speak><p><s>open</s></p></speak>'],
    ['<speak></p>a<p></speak></p>', '<speak>a<p></p></speak>'],
    ['<!DOCTYPE speak SYSTEM "file:///x"><?xml-stylesheet href="x"?><!-- <audio/> -->a', '<speak>a</speak>'],
    ['a < b', '<speak>a &lt; b</speak>'],
    ['&lt;audio src="x"/&gt; &xxe; &#1;0I', '<speak>&lt;audio src=&quot;x&quot;/&gt; &amp;xxe;  0I</speak>'],
    ['\u00010Ia', '<speak> 0Ia</speak>'],
    ['<sub alias="&quot;/&gt;&lt;audio/&gt;">x</sub>', '<speak><sub alias="&quot;/&gt;&lt;audio/&gt;">x</sub></speak>'],
    ['<break time="1s" time="2s"/>', '<speak><break time="1s"/></speak>'],
  ]
  for (const [given, safe] of cases) t.equal(safeSsml(given), safe, given)
})

t.test('only listed tags pass, unchanged, whatever the input', async () => {
  const names = [...Object.keys(SSML), 'audio', 'voice', 'speak', '!--', '?xml']
  const word = fc.oneof(
    fc.string(),
    fc.constantFrom('<', '>', '/', '"', "'", '&lt;', '&#60;', '<![CDATA[', '-->', ' src="x"', ' time="99s"', '\u0001'),
    fc.constantFrom(...names).map(name => `<${name}`),
    fc.constantFrom(...names).map(name => `</${name}>`),
  )
  fc.assert(
    fc.property(fc.array(word, { maxLength: 30 }), words => {
      const safe = safeSsml(words.join(''))
      const inside = safe.slice('<speak>'.length, -'</speak>'.length)
      const open: string[] = []
      for (const [, end, name = '', alone] of inside.matchAll(/<(\/?)([^\s/>]*)[^>]*?(\/?)>/g)) {
        if (!Object.hasOwn(SSML, name)) return false
        if (end && open.pop() !== name) return false
        if (!end && !alone) open.push(name)
      }
      return open.length === 0 && safeSsml(safe) === safe
    }),
    { numRuns: 5000 },
  )
})
