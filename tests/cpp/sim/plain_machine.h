// A machine for tests of one simulated job: it records, and the test moves time.
#pragma once

#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "csrc/sim/run/sim_job.h"
#include "csrc/wire/job_messages.h"

namespace gpushare::sim {

// Keeps what a job says and plans; time is the test's.
class PlainMachine final : public Machine {
 public:
  [[nodiscard]] Nanos now() const override { return at; }
  void tell(const SimJob& /*job*/, wire::JobMessage message) override {
    said.push_back(std::move(message));
  }
  void wake_at(const SimJob& /*job*/, Nanos when) override { wakes_at = when; }
  void released_at(const SimJob& /*job*/, Nanos when) override { releases_at = when; }
  Link& link() override { return link_; }
  [[nodiscard]] const Models& models() const override { return models_; }
  [[nodiscard]] Bytes device_total() const override { return {}; }
  [[nodiscard]] Bytes device_free() const override { return {}; }
  void on_lease(const SimJob& /*job*/, bool is_open, Nanos /*since*/) override {
    num_open += is_open ? 1 : -1;
  }

  // The last thing said, if it is of this kind.
  template <typename M>
  [[nodiscard]] const M* last() const {
    return said.empty() ? nullptr : std::get_if<M>(&said.back());
  }

  Nanos at;
  std::vector<wire::JobMessage> said;
  std::optional<Nanos> wakes_at;
  std::optional<Nanos> releases_at;
  int num_open = 0;

 private:
  Models models_ = [] {
    Models models;
    models.spill = models.restore = gib(1);
    models.switch_cost = Nanos{0};
    return models;
  }();
  Link link_{models_};
};

}  // namespace gpushare::sim
