// Values that a backward pass reads although a layer in place has overwritten them.
#pragma once

#include <utility>

#include "../layer.hpp"

namespace sn {

// While it exists, the blobs of a layer have the values of its backups.
class UseBackups {
   public:
    explicit UseBackups(Layer& layer) : layer_(layer) { swap(); }
    ~UseBackups() { swap(); }
    UseBackups(const UseBackups&) = delete;
    UseBackups& operator=(const UseBackups&) = delete;

   private:
    // Values of other shapes are of no use.
    void swap() {
        for (Backup& backup : layer_.backups)
            if (backup.is_taken && backup.values.shape() == backup.blob->shape())
                std::swap(backup.blob->data, backup.values);
    }

    Layer& layer_;
};

}  // namespace sn
