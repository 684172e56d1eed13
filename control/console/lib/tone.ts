/** What a colour says of a thing. style.css has a token for each. */
export type Tone = 'good' | 'warn' | 'bad' | 'note' | 'idle'
