import { writeFileSync } from 'node:fs'
import { generatedDocuments } from '../documents.ts'

for (const { path, text } of generatedDocuments()) writeFileSync(path, text)
