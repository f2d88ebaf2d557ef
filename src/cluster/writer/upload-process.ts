// A child process that brings one checkpoint to the bus. Of low priority: events come first. It ends with the server.
import { doJobs } from '../../lib/process/parent.ts'
import { UPLOAD_NICENESS } from '../limits.ts'
import { uploadCheckpoint } from './upload-checkpoint.ts'

doJobs(UPLOAD_NICENESS, uploadCheckpoint)
