import { dice, padding, percent } from '../model.mjs';

const limit = 64 * 1024;

// Ten sensors and a camera that sends more than all of them, over six days.
function readings(count) {
  const roll = dice(13);
  return Array.from({ length: count }, (_, i) => {
    const device = roll(10) < 6 ? 'camera-1' : `sensor-${roll(10)}`;
    return { create: { id: `r${i}`, device, day: `2026-11-${10 + Math.floor((i * 6) / count)}`, value: roll(100), frame: padding(900) } };
  });
}

export default {
  title: 'IoT devices',
  async tell(model) {
    await model.start({ 'partition.ru_max': 2000, 'logical_partition.bytes_max': limit });
    const load = readings(240);
    const room = { partitions: 2, throughput: 4000 };
    model.say(`Devices send readings, and the device is the key: right for "what did this device measure". But all readings of one
      device, for all time, must fit one logical partition: 20 GB in the service, 64 KB in this model. A device that sends 1 KB
      every second is there after eight months.`);

    model.chapter('The mistake');
    const byDevice = await model.container('readings', '/device', room);
    const before = await model.rush('two seconds', byDevice, load, { perSecond: 120 });

    model.chapter('What is seen');
    model.say(`The camera is full. It is not too fast, so waiting does not help: 403, substatus 1014. It was reported as large
      before that, at 80 % of the limit:`);
    const hot = await model.hot('readings', (key) => key.trouble === 'large');

    model.chapter('The advice');
    const advice = await model.advise('readings');

    model.chapter('The cure');
    model.say(`A hierarchical key: the device, and within it the day. The limit now holds for a device's day, and a query for a
      device alone still asks only the partitions that have it.`);
    const byDay = await model.container('readings2', ['/device', '/day'], room);
    const after = await model.rush('the same again', byDay, load, { perSecond: 120 });
    const query = "SELECT VALUE COUNT(1) FROM c WHERE c.device = 'camera-1'";
    const { resources } = await byDay.items.query(query).fetchAll();
    model.say(`Refused as too much before: ${percent(before.full / before.offered)}. After: ${percent(after.full / after.offered)}, and
      the camera has ${resources[0]} readings.`);
    return { before: before.figures(), after: after.figures(), hot: { key: hot.partitionKey, do: hot.do }, advice, camera: resources[0] };
  },
};
