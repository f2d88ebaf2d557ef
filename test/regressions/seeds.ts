// Seeds of the simulation that have shown a bug, each with what it was. A change of what the simulation draws may make one show nothing:
// what matters has a test of its own too.
export interface Regression {
  seed: number
  steps: number
  was: string
}

export const REGRESSIONS: readonly Regression[] = [
  {
    seed: 7,
    steps: 120,
    was: 'A power cut took a new data folder with all that was acknowledged: its own name was never synced.',
  },
  {
    seed: 16,
    steps: 240,
    was: 'A disk that hung while events came in was not told in /health.',
  },
  {
    seed: 3074,
    steps: 120,
    was: 'The closed bar of a late trade was in no file, and did not come again after a crash behind a checkpoint.',
  },
  {
    seed: 4,
    steps: 120,
    was: 'The bar of a late trade that was open at a checkpoint was not written after a crash, since it had ended before the lake reached so far.',
  },
  {
    seed: 160,
    steps: 200,
    was: 'One flipped bit of the file of the clock was another time, which was believed: events of now were refused as late.',
  },
  {
    seed: 24,
    steps: 120,
    was: 'A flush of the lake joined a delivery of bars that had begun before the last ones were closed, and so was over without them.',
  },
  {
    seed: 30027,
    steps: 191,
    was: 'The modelled lake counted bars that came during a flush as written, and its account did not have them: no bug of the server.',
  },
  {
    seed: 85,
    steps: 240,
    was: 'A node whose clock was set back while NATS was away did not connect again for as long as the clock had gone back.',
  },
  {
    seed: 80,
    steps: 240,
    was: 'A writer that went on from a damaged journal lacked what readers had from the stream, and both answered under the same ETag.',
  },
  {
    seed: 251,
    steps: 240,
    was: 'A submission was accepted, its answer was lost, and its agent was banned before the reader tried again: it was told of the ban alone.',
  },
  {
    seed: 5345,
    steps: 240,
    was: 'The disk refused to reserve positions, and the clock was set back before the next life: neither source of positions was there, which was told. No bug of the server.',
  },
  {
    seed: 457,
    steps: 60,
    was: 'A reader that had all events of a stream which was made anew did not get the time that was told there alone, and showed the past as now.',
  },
  {
    seed: 5188,
    steps: 240,
    was: 'A flush that had to wait wrote its rows as known when it was asked for: a label seemed to be made before its time.',
  },
  {
    seed: 101,
    steps: 240,
    was: 'A simulated market that could not be noted on a failing disk had the seed of the next one: the lake had tokens of two markets.',
  },
  {
    seed: 50364,
    steps: 240,
    was: 'A reader that had more events than a writer after a power cut kept them for as long as the stream, made anew, told the time alone.',
  },
  {
    seed: 50724,
    steps: 120,
    was: 'Two flipped bits of the file of the clock were another time without a checksum, as earlier versions wrote it: it was believed.',
  },
  {
    seed: 50725,
    steps: 240,
    was: 'A reader that began while the writer was away, and all that the stream had had was too old, took an old checkpoint for all that there is.',
  },
  {
    seed: 50759,
    steps: 240,
    was: 'The model wanted events that a simulated market would have had while its server took seconds to stop: no bug of the server.',
  },
  {
    seed: 50941,
    steps: 240,
    was: 'A byte of the last line of the log changed after a power cut had taken the mark: the line was taken for a torn one, and its submission was gone untold.',
  },
  {
    seed: 50972,
    steps: 240,
    was: 'A reader was away while two machines were lost, and the stream of the run in between with it: it went on with events that this run had lost, under the ETags of the writer.',
  },
  {
    seed: 51067,
    steps: 178,
    was: 'A server that started on a full disk had no lock of its folder, wrote there once there was room, and a second one began beside it.',
  },
  {
    seed: 20036,
    steps: 80,
    was: 'A reader that was seconds behind, since the bus answered slowly, said so only beyond lag-max-ms: until then its market stood still without a word.',
  },
  {
    seed: 40018,
    steps: 240,
    was: 'A segment of the journal that was begun while a disk hung was the first one left after a power cut, and was thrown away: nothing in it showed how far all was durable.',
  },
  {
    seed: 295,
    steps: 240,
    was: 'Files of the lake were counted after many flushes that followed the merge: no bug of the server.',
  },
  {
    seed: 415,
    steps: 240,
    was: 'A writer of another folder ended since its lake failed, before it had looked at the bus: no bug of the server.',
  },
  {
    seed: 60048,
    steps: 240,
    was: 'A byte of a journal that had one event changed, and the market began empty again: what a full disk had not taken before was looked for in its gaps. No bug of the server.',
  },
]
